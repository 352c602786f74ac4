// How every adapter begins: with the settings of the environment, silent where nothing is to be traced.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "elbowroom/trace.h"

namespace elbowroom::trace {

// False where nothing is to be recorded; what cannot be recorded is said once, on stderr.
inline bool started(const char* runtime) {
  const char* directory = std::getenv("ELBOW_TRACE_DIRECTORY");
  if (directory == nullptr || *directory == '\0') {
    return false;
  }
  if (elbow_trace_start_from_environment() != 0) {
    std::fprintf(stderr, "elbow_trace: %s is not traced: %s\n", runtime, elbow_trace_error());
    return false;
  }
  return true;
}

}  // namespace elbowroom::trace
