// What cannot be done, and the errno that says of which kind.
#pragma once

#include <stdexcept>
#include <string>

namespace elbowroom::trace {

struct Refusal : std::runtime_error {
  Refusal(int code_, const std::string& sentence) : std::runtime_error(sentence), code(code_) {}
  int code;
};

}  // namespace elbowroom::trace
