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

// The symbol as the objects of one name see it: in themselves and in what they were linked to; nullptr where it is not there.
static inline void* symbol_seen_by(const char* object, const char* name) {
  void* const handle = object == nullptr || *object == '\0' ? nullptr : dlopen(object, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) {
    return nullptr;
  }
  static const int own = 0;
  void* const symbol = dlsym(handle, name);
  dlclose(handle);  // the reference that dlopen added
  return symbol == nullptr || object_of(symbol) == object_of(&own) ? nullptr : symbol;
}

// The function `name` behind that of the calling library; nullptr where no loaded object has it. RTLD_NEXT looks only in
// what the program was linked to and opened with RTLD_GLOBAL. A library that was opened with RTLD_LOCAL (by Python, by
// plug-ins) has its own: what `caller`, an address in the code that calls, was linked to comes first, then all others.
static inline void* find_behind(const char* name, const void* caller = nullptr) {
  if (void* const symbol = dlsym(RTLD_NEXT, name)) {
    return symbol;
  }
  std::vector<std::string> objects;
  Dl_info info{};
  if (caller != nullptr && dladdr(caller, &info) != 0) {
    objects.emplace_back(info.dli_fname);
  }
  // Opened only afterwards: the loader holds a lock while it lists them.
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t /* bytes */, void* names) {
        static_cast<std::vector<std::string>*>(names)->emplace_back(object->dlpi_name);
        return 0;
      },
      &objects);
  for (const std::string& object : objects) {
    if (void* const symbol = symbol_seen_by(object.c_str(), name)) {
      return symbol;
    }
  }
  return nullptr;
}

}  // namespace elbowroom
