// The last failure of a thread, for the C interfaces: errno and a sentence.
#pragma once

#include <cerrno>
#include <exception>
#include <new>

#include "model_file.hpp"

namespace elbowroom::predict {

void remember(int code, const char* sentence);

// The same with printf's format; -1.
__attribute__((format(printf, 2, 3))) int fail(int code, const char* format, ...);

const char* last_failure();

// Calls `make`, which returns a new object; NULL with errno where it throws.
template <typename Make>
auto guarded(Make make) -> decltype(make()) {
  try {
    return make();
  } catch (const Refusal& error) {
    remember(error.code, error.what());
  } catch (const std::bad_alloc&) {
    remember(ENOMEM, "there is not enough memory for the model");
  } catch (const std::exception& error) {
    remember(EBADMSG, error.what());
  }
  return nullptr;
}

// Calls `answer`, which returns 0 or -1; -1 with errno where it throws.
template <typename Answer>
int answered(Answer answer) {
  try {
    return answer();
  } catch (const Refusal& error) {
    return fail(error.code, "%s", error.what());
  } catch (const std::exception&) {
    return fail(ENOMEM, "there is not enough memory for the load");
  }
}

}  // namespace elbowroom::predict
