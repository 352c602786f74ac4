#include "pmpi/fortran.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <string>
#include <vector>

namespace elbowroom::pmpi::fortran {
namespace {

// Commons, whose addresses stand for something; compilers spell their names differently.
void add_common(std::vector<const void*>& addresses, const std::string& name) {
  for (const char* ending : {"_", "", "__"}) {
    addresses.push_back(dlsym(RTLD_DEFAULT, (name + ending).c_str()));
  }
}

// Variables of MPI that hold such an address.
void add_held(std::vector<const void*>& addresses, const char* name) {
  const void* const* place = static_cast<const void* const*>(dlsym(RTLD_DEFAULT, name));
  addresses.push_back(place == nullptr ? nullptr : *place);
}

bool among(const std::vector<const void*>& addresses, const void* given) {
  return given != nullptr && std::find(addresses.begin(), addresses.end(), given) != addresses.end();
}

}  // namespace

// MPI has set them when the program gets to call anything that takes one.
bool ignores_status(const void* given) {
  static const std::vector<const void*> addresses = [] {
    std::vector<const void*> found;
    for (const char* name :
         {"MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE", "MPI_F08_STATUS_IGNORE", "MPI_F08_STATUSES_IGNORE"}) {
      add_held(found, name);
    }
    add_common(found, "mpi_fortran_status_ignore");
    add_common(found, "mpi_fortran_statuses_ignore");
    return found;
  }();
  return among(addresses, given);
}

bool in_place(const void* given) {
  static const std::vector<const void*> addresses = [] {
    std::vector<const void*> found;
    add_held(found, "MPIR_F_MPI_IN_PLACE");
    add_common(found, "mpi_fortran_in_place");
    return found;
  }();
  return among(addresses, given) || given == MPI_IN_PLACE;
}

}  // namespace elbowroom::pmpi::fortran
