// Programs that open their MPI and look its functions up (Julia, ctypes, plug-ins) get what linked programs get: the shims.
//
// Looking something up depends on who asks where the handle is RTLD_NEXT or RTLD_DEFAULT. These requests are handed on by a
// jump, so that the C library still sees who that is.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "behind.hpp"
#include "pmpi/lookup.hpp"

namespace elbowroom::pmpi {
namespace {

using Find = void*(void*, const char*);

constinit std::atomic<Find*> known{nullptr};

// Not inlined: a function with variables on the stack cannot end in a jump. By version, as the name alone leads back here; the versions of the C library's ports.
[[gnu::noinline]] Find* find_in_c_library() {
  Find* find = known.load(std::memory_order_relaxed);
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.27", "GLIBC_2.36", "GLIBC_2.0"}) {
    if (find == nullptr) {
      find = reinterpret_cast<Find*>(dlvsym(RTLD_NEXT, "dlsym", version));
      known.store(find, std::memory_order_relaxed);
    }
  }
  return find;
}

bool names_mpi(const char* name) {
  return name != nullptr && (std::strncmp(name, "MPI", 3) == 0 || std::strncmp(name, "mpi", 3) == 0) &&
         (name[3] == '_' || ((name[3] == 'X' || name[3] == 'x') && name[4] == '_'));
}

// Whether `found` is of the MPI that the shims call: tools have no functions of MPI's other names (PMPI_Send). Bindings of
// Fortran have libraries of their own.
bool is_of_mpi_behind(Find* find, void* handle, const char* name, const void* found) {
  char profiling[128];
  std::snprintf(profiling, sizeof profiling, "%c%s", name[0] == 'm' ? 'p' : 'P', name);
  const void* behind = find(RTLD_NEXT, profiling);
  if (behind == nullptr && name[0] == 'M') {
    behind = find(handle, profiling);
  }
  return object_of(behind) == object_of(found);
}

[[gnu::noinline]] void* find_opened(Find* find, void* handle, const char* name, const void* caller) {
  void* const found = find(handle, name);
  if (found == nullptr || is_own(found) || is_own(caller) || !is_of_mpi_behind(find, handle, name, found)) {
    return found;
  }
  static void* const own = [] {
    Dl_info info{};
    return dladdr(&known, &info) != 0 ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  }();
  const bool has_shim = own != nullptr && is_own(find(own, name));
  void* const linked = has_shim ? find(RTLD_DEFAULT, name) : nullptr;
  return linked != nullptr ? linked : found;
}

}  // namespace
}  // namespace elbowroom::pmpi

#if defined(__has_cpp_attribute) && __has_cpp_attribute(gnu::musttail)
#define ELBOW_JUMP [[gnu::musttail]]
#elif defined(__has_cpp_attribute) && __has_cpp_attribute(clang::musttail)
#define ELBOW_JUMP [[clang::musttail]]
#else
#define ELBOW_JUMP  // CMakeLists.txt has the options for it
#endif

extern "C" __attribute__((no_sanitize("thread", "address", "undefined"))) void* dlsym(void* handle,
                                                                                      const char* name) noexcept {
  using namespace elbowroom::pmpi;
  Find* const find = find_in_c_library();
  if (handle != RTLD_DEFAULT && handle != RTLD_NEXT && names_mpi(name)) {
    return find_opened(find, handle, name, __builtin_return_address(0));
  }
  ELBOW_JUMP return find(handle, name);
}
