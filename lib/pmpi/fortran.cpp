#include "pmpi/fortran.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>

#include "pmpi/lookup.hpp"

namespace elbowroom::pmpi::fortran {
namespace {

// What stands for an argument that is left out.
class Addresses {
 public:
  // A common, whose address stands for something; compilers spell its name differently.
  void add_common(const char* name) {
    for (const char* ending : {"_", "", "__"}) {
      char spelled[64];
      std::snprintf(spelled, sizeof spelled, "%s%s", name, ending);
      for_each_definition(spelled, [this](const void* address) { return add(address); });
    }
  }

  // A variable of MPI that holds such an address.
  void add_held(const char* name) {
    for_each_definition(name, [this](const void* place) { return add(*static_cast<const void* const*>(place)); });
  }

  bool contains(const void* given) const {
    return given != nullptr && std::find(all_.begin(), all_.end(), given) != all_.end();
  }

 private:
  // Several objects of a process may define a common; whether there is room for more.
  bool add(const void* address) {
    if (!contains(address) && count_ < all_.size()) {
      all_[count_++] = address;
    }
    return count_ < all_.size();
  }

  std::array<const void*, 64> all_{};
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
