#include "pmpi/lookup.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace elbowroom::pmpi {
namespace {

// By their paths: the program itself, which has none, and what it was linked with are searched before.
std::vector<std::string> loaded_objects() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* list) {
        if (object->dlpi_name != nullptr && *object->dlpi_name != '\0') {
          static_cast<std::vector<std::string>*>(list)->emplace_back(object->dlpi_name);
        }
        return 0;
      },
      &paths);
  return paths;
}

[[noreturn]] void end_without(const char* name) {
  std::fprintf(stderr,
               "elbowroom: no library of the process defines %s; it uses another MPI than the one that elbowroom's "
               "library was built for\n",
               name);
  std::abort();
}

// A library that defines it stays loaded from now on, as its address is kept.
void* find_in_loaded(const char* name) {
  void* found = nullptr;
  for (const std::string& path : loaded_objects()) {
    void* const object = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (object == nullptr) {
      continue;
    }
    found = dlsym(object, name);
    if (found != nullptr && !is_own(found)) {
      return found;
    }
    dlclose(object);
  }
  return nullptr;
}

}  // namespace

const void* library_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

bool is_own(const void* address) {
  static const void* const own = library_of(reinterpret_cast<const void*>(&is_own));
  return library_of(address) == own;
}

void* needed_function(const char* name) {
  char profiling[128];  // the program's memory may be used up
  std::snprintf(profiling, sizeof profiling, "%c%s", name[0] == 'm' ? 'p' : 'P', name);
  // What has no other name (PMPI_Send) is not looked for by one.
  const char* const names[] = {name, name[0] == 'P' ? name : profiling};
  for (const char* const one : names) {
    if (void* const found = dlsym(RTLD_NEXT, one)) {
      return found;
    }
  }
  for (const char* const one : names) {
    if (void* const found = find_in_loaded(one)) {
      return found;
    }
  }
  end_without(name);
}

void* needed_data(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  found = found != nullptr ? found : find_in_loaded(name);
  if (found == nullptr) {
    end_without(name);
  }
  return found;
}

void visit_definitions(const char* name, TakeAddress* take, void* context) {
  if (void* const found = dlsym(RTLD_DEFAULT, name); found != nullptr && !take(context, found)) {
    return;
  }
  for (const std::string& path : loaded_objects()) {
    void* const object = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (object == nullptr) {
      continue;
    }
    void* const found = dlsym(object, name);
    dlclose(object);
    if (found != nullptr && !take(context, found)) {
      return;
    }
  }
}

}  // namespace elbowroom::pmpi
