// One rank of each node starts StarPU before the others: at its first start on a machine, StarPU measures the bus, and 1.3.10
// aborts where it reads the file while another process writes it.
#pragma once

#include <mpi.h>

namespace elbowroom {

// Calls `start`, which returns 0 or an error, on each rank of `comm`; its result. Collective.
template <typename Start>
int start_on_nodes(MPI_Comm comm, Start start) {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int rank = 0;
  MPI_Comm_rank(node, &rank);
  int failed = rank == 0 ? start() : 0;
  MPI_Barrier(node);
  if (rank != 0) failed = start();
  MPI_Comm_free(&node);
  return failed;
}

}  // namespace elbowroom
