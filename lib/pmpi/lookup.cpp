#include "pmpi/lookup.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "behind.hpp"

namespace elbowroom::pmpi {
namespace {

[[noreturn]] void end_without(const char* name) {
  std::fprintf(stderr,
               "elbowroom: no library of the process defines %s; it uses another MPI than the one that elbowroom's "
               "library was built for\n",
               name);
  std::abort();
}

}  // namespace

bool is_own(const void* address) {
  static const void* const own = object_of(reinterpret_cast<const void*>(&is_own));
  return object_of(address) == own;
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
