// What `elbowroom trace record` and the launcher of a job say in the environment.
#pragma once

#include <functional>
#include <string>

#include "c_interface.hpp"
#include "elbowroom/trace.h"

namespace elbowroom::trace {

// Settings and the strings that they point at; not to be copied.
class Environment {
 public:
  // `variable` is getenv, or what a test puts in its place. Throws Refusal, which names a variable that is wrong.
  explicit Environment(const std::function<const char*(const char*)>& variable);
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  const elbow_trace_settings& settings() const { return settings_; }

 private:
  std::string directory_;
  std::string memory_;
  std::string categories_;
  std::string without_;
  std::string core_;
  elbow_trace_settings settings_ = c_interface::sized<elbow_trace_settings>();
};

}  // namespace elbowroom::trace
