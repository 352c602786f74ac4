// A request that cannot be answered, and the record that says so (docs/protocol.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace elbowroom {

// Which field, its value, why, and a hint how to correct it. `kind`: usage (what was asked) or machine.
struct RequestError : std::runtime_error {
  RequestError(std::string field_, std::string value_, const std::string& message, std::string hint_,
               std::string kind_ = "usage")
      : std::runtime_error(message),
        field(std::move(field_)),
        value(std::move(value_)),
        hint(std::move(hint_)),
        kind(std::move(kind_)) {}
  std::string field;
  std::string value;
  std::string hint;
  std::string kind;
};

// {"field", "value", "message", "hint", "kind"}: what ranks send each other and programs print.
nlohmann::json error_fields(const RequestError& error);

// The error of another rank, from its fields; on rank 0's own host nothing is added to the message.
RequestError error_of_rank(const nlohmann::json& fields, int rank, const std::string& host);

}  // namespace elbowroom
