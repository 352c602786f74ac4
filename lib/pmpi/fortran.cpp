#include "pmpi/fortran.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>

namespace elbowroom::pmpi::fortran {
namespace {

// What stands for an argument that is left out. Of a fixed size: called from shims, which no exception may cross.
class Addresses {
 public:
  // A common, whose address stands for something; compilers spell its name differently.
  void add_common(const char* name) {
    for (const char* ending : {"_", "", "__"}) {
      char spelled[64];
      std::snprintf(spelled, sizeof spelled, "%s%s", name, ending);
      add(dlsym(RTLD_DEFAULT, spelled));
    }
  }

  // A variable of MPI that holds such an address.
  void add_held(const char* name) {
    const void* const* place = static_cast<const void* const*>(dlsym(RTLD_DEFAULT, name));
    add(place == nullptr ? nullptr : *place);
  }

  bool contains(const void* given) const {
    return given != nullptr && std::find(all_.begin(), all_.end(), given) != all_.end();
  }

 private:
  void add(const void* address) { all_.at(count_++) = address; }

  std::array<const void*, 10> all_{};
  std::size_t count_ = 0;
};

}  // namespace

// MPI has set them when the program gets to call anything that takes one.
bool ignores_status(const void* given) {
  static const Addresses addresses = [] {
    Addresses result;
    for (const char* name :
         {"MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE", "MPI_F08_STATUS_IGNORE", "MPI_F08_STATUSES_IGNORE"}) {
      result.add_held(name);
    }
    result.add_common("mpi_fortran_status_ignore");
    result.add_common("mpi_fortran_statuses_ignore");
    return result;
  }();
  return addresses.contains(given);
}

bool in_place(const void* given) {
  static const Addresses addresses = [] {
    Addresses result;
    result.add_held("MPIR_F_MPI_IN_PLACE");
    result.add_common("mpi_fortran_in_place");
    return result;
  }();
  return addresses.contains(given) || given == MPI_IN_PLACE;
}

}  // namespace elbowroom::pmpi::fortran
