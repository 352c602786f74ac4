// A request that cannot be answered.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace elbowroom {

// Which field, its value, why, and how to mend it. `kind`: usage (what was asked) or machine.
struct RequestError : std::runtime_error {
  RequestError(std::string field_, std::string value_, const std::string& message, std::string mend_,
               std::string kind_ = "usage")
      : std::runtime_error(message),
        field(std::move(field_)),
        value(std::move(value_)),
        mend(std::move(mend_)),
        kind(std::move(kind_)) {}
  std::string field;
  std::string value;
  std::string mend;
  std::string kind;
};

}  // namespace elbowroom
