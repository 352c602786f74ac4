#include "pmpi/nodes.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string_view>

namespace elbowroom::pmpi {
namespace {

constexpr std::size_t kMostOfHost = 64;

// 0: not given.
int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  int number = 0;
  if (text != nullptr) {
    const std::string_view digits(text);
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
  }
  return std::max(number, 0);
}

bool all_are_here(std::size_t ranks) {
  // Of Open MPI, Hydra (MPICH, Intel MPI) and MVAPICH; Slurm counts nodes.
  for (const char* const name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE"}) {
    if (static_cast<std::size_t>(number_in(name)) == ranks) {
      return true;
    }
  }
  return std::getenv("SLURM_PROCID") != nullptr && number_in("SLURM_STEP_NUM_NODES") == 1;
}

}  // namespace

// Containers of one host may have one kernel, hosts of one image one name.
std::string node_name() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::string name = std::string(host).substr(0, kMostOfHost);
  std::replace(name.begin(), name.end(), '/', '-');
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char ending[16];
  std::snprintf(ending, sizeof ending, "-%08x", static_cast<unsigned>(std::hash<std::string>{}(boot)));
  return name + ending;
}

std::vector<std::int32_t> nodes_of_names(const std::vector<std::string>& names) {
  const std::string fallback = all_are_here(names.size()) ? node_name() : std::string();
  std::map<std::string, std::int32_t> numbers;
  for (const std::string& name : names) {
    const std::string& known = name.empty() ? fallback : name;
    if (!known.empty()) {
      numbers.emplace(known, static_cast<std::int32_t>(numbers.size()));
    }
  }
  const auto unknown = static_cast<std::int32_t>(numbers.size());
  std::vector<std::int32_t> nodes;
  nodes.reserve(names.size());
  for (const std::string& name : names) {
    const auto known = numbers.find(name.empty() ? fallback : name);
    nodes.push_back(known != numbers.end() ? known->second : unknown);
  }
  return nodes;
}

std::vector<std::int32_t> emulated_nodes(int ranks) {
  std::vector<std::int32_t> nodes;
  if (const int each = number_in("ELBOW_NIC_RANKS_PER_NODE"); each > 0) {
    for (int rank = 0; rank < ranks; ++rank) {
      nodes.push_back(rank / each);
    }
  }
  return nodes;
}

}  // namespace elbowroom::pmpi
