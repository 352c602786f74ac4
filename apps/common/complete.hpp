// Waiting for the MPI. It is polled, never blocked in: so this decides how to wait, not the MPI.
#pragma once

#include <mpi.h>

#include <vector>

#include "common/gate.hpp"

namespace elbowroom::program {

// One look in a loop of waiting for messages.
void wait_a_little(Waiting waiting);
// Returns when all requests are complete.
void complete(std::vector<MPI_Request>& requests, Waiting waiting);
// A barrier of the same kind.
void barrier(MPI_Comm comm, Waiting waiting);

}  // namespace elbowroom::program
