// A shared library that is loaded at run time, and the reason where it cannot be.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace elbowroom::gpu {

// Something that this machine does not have: `n/a` with what() as the reason, and what the user can do about it.
class Unavailable : public std::runtime_error {
 public:
  Unavailable(const std::string& reason, std::string hint) : std::runtime_error(reason), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

class Library {
 public:
  // The first of `paths` that the dynamic linker loads; a name without a slash is searched as the linker does. Throws
  // Unavailable with the linker's reason for the last one, and `hint`.
  // The library stays loaded until the process ends, since threads may still end in its code: NVIDIA's libraries keep
  // data of each thread, whose destructors run when the thread ends (pthread_key_create(3)).
  Library(const std::vector<std::string>& paths, const std::string& hint);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const std::string& path() const { return path_; }
  void* find(const char* symbol) const;  // nullptr where the library has no such symbol
  // As find(); Unavailable where there is none: the library is older than what is needed.
  void* need(const char* symbol) const;
  // The address of a symbol as a pointer to a function of this type.
  template <class Call>
  static Call* as(void* address) {
    return reinterpret_cast<Call*>(reinterpret_cast<std::uintptr_t>(address));
  }

 private:
  void* handle_ = nullptr;
  std::string path_;
  std::string hint_;
};

// `folder`/`pattern` for each folder and each pattern (*, ?), expanded; then the patterns without a wildcard themselves,
// for the linker to search.
std::vector<std::string> candidates(const std::vector<std::string>& folders, const std::vector<std::string>& patterns);

}  // namespace elbowroom::gpu
