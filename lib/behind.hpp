// For libraries that are preloaded and define functions of others: the function that a program would call without them.
// `static`: each library looks from where it is itself.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <string>
#include <vector>

namespace elbowroom {

// The object that an address belongs to, by where it is loaded; nullptr where it belongs to none.
static inline const void* object_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

// All objects that are loaded, by their paths; not the program itself, which has none.
static inline std::vector<std::string> loaded_objects() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t /* bytes */, void* list) {
        if (object->dlpi_name != nullptr && *object->dlpi_name != '\0') {
          static_cast<std::vector<std::string>*>(list)->emplace_back(object->dlpi_name);
        }
        return 0;
      },
      &paths);
  return paths;
}

// The symbol as a loaded object sees it: in itself and in what it was linked to; nullptr where it is not there or the calling
// library's. An object that has it stays loaded from now on, as its address is kept.
static inline void* symbol_seen_by(const std::string& object, const char* name) {
  void* const handle = object.empty() ? nullptr : dlopen(object.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) {
    return nullptr;
  }
  static const int own = 0;
  void* const symbol = dlsym(handle, name);
  if (symbol != nullptr && object_of(symbol) != object_of(&own)) {
    return symbol;
  }
  dlclose(handle);  // the reference that dlopen added
  return nullptr;
}

// The symbol in any loaded object: first as the object of `caller` sees it, an address in the code that calls.
static inline void* find_in_loaded(const char* name, const void* caller = nullptr) {
  Dl_info info{};
  if (caller != nullptr && dladdr(caller, &info) != 0) {
    if (void* const symbol = symbol_seen_by(info.dli_fname, name)) {
      return symbol;
    }
  }
  // Opened only after they are listed: the loader holds a lock meanwhile.
  for (const std::string& object : loaded_objects()) {
    if (void* const symbol = symbol_seen_by(object, name)) {
      return symbol;
    }
  }
  return nullptr;
}

// The function `name` behind that of the calling library; nullptr where no loaded object has it. RTLD_NEXT looks only in
// what the program was linked to and opened with RTLD_GLOBAL. A library that was opened with RTLD_LOCAL (by Python, by
// plug-ins) has its own.
static inline void* find_behind(const char* name, const void* caller = nullptr) {
  void* const symbol = dlsym(RTLD_NEXT, name);
  return symbol != nullptr ? symbol : find_in_loaded(name, caller);
}

}  // namespace elbowroom
