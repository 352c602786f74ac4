#include "base/request_error.hpp"

#include <nlohmann/json.hpp>

namespace elbowroom {

nlohmann::json error_fields(const RequestError& error) {
  return {{"field", error.field},
          {"value", error.value},
          {"message", error.what()},
          {"hint", error.hint},
          {"kind", error.kind}};
}

RequestError error_of_rank(const nlohmann::json& fields, int rank, const std::string& host) {
  const std::string where = rank == 0 ? "" : " (rank " + std::to_string(rank) + " on " + host + ")";
  return {fields.at("field"), fields.at("value"), fields.at("message").get<std::string>() + where, fields.at("hint"),
          fields.at("kind")};
}

}  // namespace elbowroom
