#include "failure.hpp"

#include <cstdarg>
#include <cstdio>

namespace elbowroom::predict {
namespace {

// Long enough for a sentence with a path in it; what is longer ends early.
thread_local char last_error[1024] = "";

}  // namespace

void remember(int code, const char* sentence) {
  std::snprintf(last_error, sizeof last_error, "%s", sentence);
  errno = code;
}

int fail(int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  // It was started one line above, which the analyzer of clang 14 overlooks.
  std::vsnprintf(last_error, sizeof last_error, format, arguments);  // NOLINT(clang-analyzer-valist.Uninitialized)
  va_end(arguments);
  errno = code;
  return -1;
}

const char* last_failure() { return last_error; }

}  // namespace elbowroom::predict
