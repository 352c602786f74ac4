// Which node each process of MPI_COMM_WORLD is on.
#pragma once

#include <cstdint>
#include <vector>

namespace elbowroom::pmpi {

// Nodes are numbered by their lowest ranks. Collective over MPI_COMM_WORLD, unless ELBOW_NIC_RANKS_PER_NODE says it: an
// emulated NIC puts so many ranks on each node.
std::vector<std::int32_t> nodes_of_ranks(int rank, int size);

}  // namespace elbowroom::pmpi
