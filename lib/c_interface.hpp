// What the C interfaces of all libraries have in common (include/elbowroom/README.md): the last error of a thread, exceptions
// that become errno, and structures that say how large they are.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>

namespace elbowroom::c_interface {

// What cannot be done, and the errno that says of which kind.
struct Refusal : std::runtime_error {
  Refusal(int code_, const std::string& sentence) : std::runtime_error(sentence), code(code_) {}
  int code;
};

// Of the calling thread in this library; a longer sentence ends early. A library exports none of this: each has its own.
constinit inline thread_local char last_error[1024] = "";

// Remembers a sentence in printf's format, and sets errno; -1.
__attribute__((format(printf, 2, 3))) inline int fail(int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  // It was started one line above, which the analyzer of clang 14 overlooks.
  std::vsnprintf(last_error, sizeof last_error, format, arguments);  // NOLINT(clang-analyzer-valist.Uninitialized)
  va_end(arguments);
  errno = code;
  return -1;
}

inline int fail(int code, const std::string& sentence) { return fail(code, "%s", sentence.c_str()); }

// Calls `work`, which returns nothing, a number or a pointer: 0, or what it returned. Where it throws: -1 or NULL, and the last
// error; `otherwise` is the errno of exceptions without one.
template <typename Work>
auto guard(Work work, int otherwise = EIO) {
  using Result = decltype(work());
  try {
    if constexpr (std::is_void_v<Result>) {
      work();
      return 0;
    } else {
      return work();
    }
  } catch (const Refusal& refusal) {
    fail(refusal.code, "%s", refusal.what());
  } catch (const std::bad_alloc&) {
    fail(ENOMEM, "there is not enough memory");
  } catch (const std::invalid_argument& error) {
    fail(EINVAL, "%s", error.what());
  } catch (const std::system_error& error) {
    fail(error.code().value(), "%s", error.what());
  } catch (const std::exception& error) {
    fail(otherwise, "%s", error.what());
  } catch (...) {
    fail(otherwise, "an exception of unknown type");
  }
  if constexpr (std::is_pointer_v<Result>) {
    return Result{nullptr};
  } else if constexpr (std::is_void_v<Result>) {
    return -1;
  } else {
    return Result{-1};
  }
}

// Zeros, with its size.
template <typename Struct>
Struct sized() {
  Struct result{};
  result.size = sizeof(Struct);
  return result;
}

inline void refuse_null(const void* given, const char* name) {
  if (given == nullptr) {
    throw Refusal(EINVAL, std::string(name) + ": is NULL");
  }
}

// Refusal unless `given` is there and has the bytes of the interface's first version, `least`. Larger ones are of a later
// release, but a size that no structure has was never set.
template <typename Struct>
void check_size(const Struct* given, const char* name, std::size_t least = sizeof(Struct)) {
  constexpr std::size_t kMost = 4096;
  refuse_null(given, name);
  if (given->size < least || given->size > kMost) {
    throw Refusal(EINVAL, std::string(name) + ".size " + std::to_string(given->size) +
                              ": must be the structure's size, " + std::to_string(sizeof(Struct)) +
                              "; set it to sizeof");
  }
}

// A copy of a structure of the caller, with zeros for what a smaller one lacks. Refusal for a larger one whose additional
// bytes, which this release does not know, are not zero.
template <typename Struct>
Struct taken(const Struct* given, const char* name, std::size_t least = sizeof(Struct)) {
  check_size(given, name, least);
  const char* const bytes = reinterpret_cast<const char*>(given);
  if (std::any_of(bytes + std::min(sizeof(Struct), given->size), bytes + given->size,
                  [](char byte) { return byte != 0; })) {
    throw Refusal(EINVAL, std::string(name) + ": sets fields that this release does not know (it has " +
                              std::to_string(sizeof(Struct)) + " of " + std::to_string(given->size) +
                              " bytes); leave them 0, or use a newer library");
  }
  Struct copy{};
  std::memcpy(&copy, given, std::min(sizeof(Struct), given->size));
  copy.size = sizeof(Struct);
  return copy;
}

// The same; zeros where the caller gives none.
template <typename Struct>
Struct taken_or_zeros(const Struct* given, const char* name, std::size_t least = sizeof(Struct)) {
  return given == nullptr ? sized<Struct>() : taken(given, name, least);
}

// Fills a structure of the caller, whose size was checked: as much of it as both know.
template <typename Struct>
void give(const Struct& result, Struct* given) {
  const std::size_t size = given->size;
  std::memcpy(given, &result, std::min(sizeof(Struct), size));
  given->size = size;
}

}  // namespace elbowroom::c_interface
