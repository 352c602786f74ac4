// Which node each process of MPI_COMM_WORLD is on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace elbowroom::pmpi {

// What processes of one node have in common, and no other node: as part of a file's name.
std::string node_name();

// Nodes of ranks by their names, numbered by their lowest ranks. Ranks without a name are on this process's node if the
// launcher says that all ranks are, else together on a node of their own, which has the last number.
std::vector<std::int32_t> nodes_of_names(const std::vector<std::string>& names);

// The same by ELBOW_NIC_RANKS_PER_NODE: an emulated NIC puts so many ranks on each node. Empty where it is not set.
std::vector<std::int32_t> emulated_nodes(int ranks);

}  // namespace elbowroom::pmpi
