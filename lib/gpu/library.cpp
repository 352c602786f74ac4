#include "gpu/library.hpp"

#include <dlfcn.h>
#include <glob.h>

namespace elbowroom::gpu {

Library::Library(const std::vector<std::string>& paths, const std::string& hint) : hint_(hint) {
  std::string reason = "no path was given";
  for (const std::string& path : paths) {
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle_ != nullptr) {
      path_ = path;
      return;
    }
    const char* const message = dlerror();
    reason = message == nullptr ? path + " cannot be loaded" : message;
  }
  throw Unavailable(reason, hint);
}

void* Library::find(const char* symbol) const { return dlsym(handle_, symbol); }

void* Library::need(const char* symbol) const {
  void* const address = find(symbol);
  if (address == nullptr) throw Unavailable(path_ + " has no " + symbol + ": it is too old", hint_);
  return address;
}

std::vector<std::string> candidates(const std::vector<std::string>& folders, const std::vector<std::string>& patterns) {
  std::vector<std::string> paths;
  for (const std::string& folder : folders) {
    for (const std::string& pattern : patterns) {
      glob_t found{};
      if (glob((folder + "/" + pattern).c_str(), 0, nullptr, &found) == 0) {
        for (std::size_t i = found.gl_pathc; i > 0; --i) paths.emplace_back(found.gl_pathv[i - 1]);  // newest first
      }
      globfree(&found);
    }
  }
  for (const std::string& pattern : patterns) {
    if (pattern.find_first_of("*?") == std::string::npos) paths.push_back(pattern);
  }
  return paths;
}

}  // namespace elbowroom::gpu
