#include "pmpi/profile/nodes.hpp"

#include <mpi.h>

#include <charconv>
#include <cstdlib>
#include <map>
#include <string_view>

namespace elbowroom::pmpi {
namespace {

// 0: not given.
int ranks_per_node() {
  const char* const text = std::getenv("ELBOW_NIC_RANKS_PER_NODE");
  int ranks = 0;
  if (text != nullptr) {
    const std::string_view digits(text);
    std::from_chars(digits.data(), digits.data() + digits.size(), ranks);
  }
  return ranks > 0 ? ranks : 0;
}

}  // namespace

std::vector<std::int32_t> nodes_of_ranks(int rank, int size) {
  std::vector<std::int32_t> nodes(static_cast<std::size_t>(size));
  if (const int each = ranks_per_node(); each > 0) {
    for (int other = 0; other < size; ++other) {
      nodes[static_cast<std::size_t>(other)] = other / each;
    }
    return nodes;
  }
  MPI_Comm node = MPI_COMM_NULL;
  PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  std::int32_t lowest = rank;
  PMPI_Bcast(&lowest, 1, MPI_INT32_T, 0, node);
  PMPI_Comm_free(&node);
  PMPI_Allgather(&lowest, 1, MPI_INT32_T, nodes.data(), 1, MPI_INT32_T, MPI_COMM_WORLD);
  std::map<std::int32_t, std::int32_t> numbers;
  for (const std::int32_t one : nodes) {
    numbers.emplace(one, static_cast<std::int32_t>(numbers.size()));  // a node's lowest rank comes first
  }
  for (std::int32_t& one : nodes) {
    one = numbers[one];
  }
  return nodes;
}

}  // namespace elbowroom::pmpi
