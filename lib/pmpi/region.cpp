// MPI_Pcontrol takes any number of arguments, whose meaning is the tools'; MPI itself uses none. Only the first is handed on.
#include "calls.hpp"
#include "pmpi/fortran.hpp"
#include "pmpi/shim.hpp"

namespace elbowroom::pmpi {
namespace {

constinit Next<int(const int, ...)> next{"MPI_Pcontrol"};

}  // namespace

extern "C" int MPI_Pcontrol(const int level, ...) {
  if (passing()) {
    return next()(level);
  }
  const Call of(call::Pcontrol);
  tool_region(level);
  return next()(level);
}

namespace fortran {
namespace {

void region_any(Next<void(Word)>& behind, const void* caller, Word level) {
  if (passing(caller, reinterpret_cast<const void*>(behind()))) {
    return behind()(level);
  }
  const Call of(call::Pcontrol);
  tool_region(value<int>(level));
  behind()(level);
}

constinit Next<void(Word)> next_fortran{"mpi_pcontrol_"};
constinit Next<void(Word)> next_f08{"mpi_pcontrol_f08_"};

}  // namespace

extern "C" void mpi_pcontrol_(Word level) { region_any(next_fortran, __builtin_return_address(0), level); }
extern "C" void mpi_pcontrol_f08_(Word level) { region_any(next_f08, __builtin_return_address(0), level); }
extern "C" void mpi_pcontrol(Word level) __attribute__((alias("mpi_pcontrol_")));
extern "C" void mpi_pcontrol__(Word level) __attribute__((alias("mpi_pcontrol_")));
extern "C" void MPI_PCONTROL(Word level) __attribute__((alias("mpi_pcontrol_")));

}  // namespace fortran
}  // namespace elbowroom::pmpi
