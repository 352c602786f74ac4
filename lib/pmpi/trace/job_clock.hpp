// The clocks of a traced job's processes, compared at its begin and end and now and then between.
#pragma once

#include <vector>

#include "elbowroom/trace.h"
#include "pmpi/mpi.hpp"

namespace elbowroom::pmpi {

class JobClockOfTrace {
 public:
  // Collective over the ranks of MPI_COMM_WORLD that record (agreement.hpp), as MPI_Init, MPI_Barrier and MPI_Finalize are.
  // `by_sessions`: by a communicator made of them, as MPI_Comm_create_from_group is, and this once: closing sessions is not
  // collective.
  void begin(const std::vector<int>& members, bool by_sessions);
  void barrier();
  void end();
  // At the next barrier, whatever the time: what rank 0 says counts.
  void wanted() { wanted_ = true; }

 private:
  void compare();

  elbow_clock* clock_ = nullptr;
  const elbow_trace_type* type_ = nullptr;
  MPI_Comm own_ = MPI_COMM_NULL;
  double seconds_ = 0;
  bool once_ = false;
  bool wanted_ = false;
};

}  // namespace elbowroom::pmpi
