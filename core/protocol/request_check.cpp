// Checks of a request against the job and the hosts it would run on.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "kernels/kernel.hpp"
#include "protocol/message_layout.hpp"
#include "protocol/request.hpp"

namespace elbowroom {
namespace {

std::string core_list(const Site& site, bool allowed_only) {
  std::string all;
  for (const SiteCore& core : site.cores) {
    if (core.allowed || !allowed_only) {
      all += fmt::format("{}{}", all.empty() ? "" : ",", core.number);
    }
  }
  return all;
}

// Which list a core is in, by core (not by processing unit): the same core twice is refused with the reason.
void check_cores(const std::vector<int>& cores, const std::string& field, const Site& site, bool may_share,
                 std::map<int, std::string>& used) {
  for (const int number : cores) {
    const SiteCore* core = site.core(number);
    const std::string value = std::to_string(number);
    if (core == nullptr) {
      throw RequestError(field, value, fmt::format("core {} does not exist", number),
                         "cores here: " + core_list(site, false));
    }
    if (!core->allowed) {
      throw RequestError(field, value, fmt::format("core {} is outside the cpuset of this job", number),
                         "cores allowed: " + core_list(site, true));
    }
    const auto [previous, fresh] = used.emplace(core->number, field);
    if (fresh) {
      continue;
    }
    if (previous->second == field) {
      throw RequestError(field, value, fmt::format("core {} is used twice", number), "name each core once");
    }
    if (!may_share) {
      throw RequestError(field, value, fmt::format("communication core {} is among the computing cores", number),
                         "keep the communication core out of the computing cores");
    }
  }
}

const SiteNode& check_node(int number, const char* field, const Site& site) {
  std::string all;
  for (const SiteNode& node : site.nodes) {
    if (node.number == number) {
      return node;
    }
    all += fmt::format("{}{}", all.empty() ? "" : ",", node.number);
  }
  throw RequestError(field, std::to_string(number), fmt::format("NUMA node {} does not exist", number),
                     "nodes here: " + all);
}

std::int64_t computing_bytes(const Request& request, const Placement& placement) {
  const KernelInfo* kernel = find_kernel(request.kernel);
  if (kernel == nullptr || kernel->arrays == 0) {
    return 0;
  }
  const auto cores = static_cast<std::int64_t>(placement.comp_cores.size());
  if (cores > 0 && request.working_set > std::numeric_limits<std::int64_t>::max() / 4 / cores) {
    return std::numeric_limits<std::int64_t>::max() / 4;
  }
  return request.working_set * cores;
}

}  // namespace

const SiteCore* Site::core(int pu) const {
  for (const SiteCore& core : cores) {
    if (std::find(core.pus.begin(), core.pus.end(), pu) != core.pus.end()) {
      return &core;
    }
  }
  return nullptr;
}

Placement placement_of(const Request& request, int rank, bool same_host) {
  for (const auto& [number, placement] : request.placements) {
    if (number == rank) {
      return placement;
    }
  }
  Placement placement = request.first;
  if (rank != 0 && same_host) {
    placement.comm_cores = request.peer_cores;
  }
  return placement;
}

bool rank_computes(const Request& request, int rank) {
  return request.kernel != "none" && (rank == 0 || request.all_compute || request.overlap) &&
         std::any_of(request.sequence.begin(), request.sequence.end(), computes);
}

bool rank_communicates(const Request& request, int rank) {
  return (request.pattern == Pattern::ring || rank < 2 || request.overlap) &&
         std::any_of(request.sequence.begin(), request.sequence.end(), communicates);
}

void check_placement(const Request& request, const Placement& placement, bool computing, const Site& site,
                     int sharers) {
  std::map<int, std::string> used;
  const bool communicating = std::any_of(request.sequence.begin(), request.sequence.end(), communicates);
  if (computing) {
    check_cores(placement.comp_cores, "comp_cores", site, false, used);
    if (placement.comp_cores.empty()) {
      throw RequestError("comp_cores", "", "a computation needs at least one core", "name one or more computing cores");
    }
  }
  // Beside an operation with a computation of its own, the communicating thread computes too.
  const bool same_thread = computing && request.overlap.has_value();
  check_cores(placement.comm_cores, "comm_cores", site, request.scheduling || same_thread, used);
  if (communicating && placement.comm_cores.empty()) {
    throw RequestError("comm_cores", "", "a communication needs a core on every rank",
                       "name the core of the communication thread");
  }
  const SiteNode* comp_node = computing ? &check_node(placement.comp_node, "comp_node", site) : nullptr;
  const std::int64_t computing_need = computing ? computing_bytes(request, placement) : 0;
  if (comp_node != nullptr && computing_need > comp_node->memory) {
    throw RequestError("working_set", fmt::format("{}", request.working_set),
                       fmt::format("the working sets of {} cores are larger than the memory of node {}",
                                   placement.comp_cores.size(), placement.comp_node),
                       fmt::format("the node has {} bytes available", comp_node->memory));
  }
  if (!communicating) {
    return;
  }
  const SiteNode& comm_node = check_node(placement.comm_node, "comm_node", site);
  if (request.overlap) {
    return;  // how much memory its operation needs depends on the number of ranks
  }
  const std::int64_t besides = comp_node == &comm_node ? computing_need : 0;
  const std::int64_t need = least_message_bytes(request, placement.comm_cores.size()) * std::max(sharers, 1);
  if (need > comm_node.memory - besides) {
    throw RequestError(
        "size", fmt::format("{}", request.size),
        fmt::format("the messages of {} ranks are larger than the memory of node {}", sharers, placement.comm_node),
        fmt::format("the node has {} bytes available", comm_node.memory - besides));
  }
}

namespace {

// A core of a rank, and what runs there.
struct Claim {
  std::string host;
  int core;
  bool computing;
  std::string field;
};

std::vector<Claim> claims(const Request& request, const std::vector<std::string>& hosts) {
  std::vector<Claim> all;
  for (std::size_t r = 0; r < hosts.size(); ++r) {
    const auto rank = static_cast<int>(r);
    const Placement placement = placement_of(request, rank, hosts[r] == hosts.front());
    if (rank_computes(request, rank) || has_bystanders(request, rank)) {
      for (const int core : placement.comp_cores) {
        all.push_back({hosts[r], core, true, "comp_cores"});
      }
    }
    const bool same_thread = request.overlap && rank_computes(request, rank);
    if (rank_communicates(request, rank) && !same_thread) {
      for (const int core : placement.comm_cores) {
        all.push_back({hosts[r], core, false, rank == 0 ? "comm_cores" : "peer_cores"});
      }
    }
  }
  return all;
}

// The first claim of a core that another thread has, one of the two computing (or neither: `computing` false).
std::optional<Claim> clash(const std::vector<Claim>& all, bool computing) {
  for (auto later = all.begin(); later != all.end(); ++later) {
    const bool shared = std::any_of(all.begin(), later, [&](const Claim& earlier) {
      return earlier.host == later->host && earlier.core == later->core &&
             (earlier.computing || later->computing) == computing;
    });
    if (shared) {
      return *later;
    }
  }
  return std::nullopt;
}

}  // namespace

void check_job(const Request& request, const std::vector<std::string>& hosts) {
  const auto ranks = static_cast<int>(hosts.size());
  const bool communicating = std::any_of(request.sequence.begin(), request.sequence.end(), communicates);
  if (communicating && ranks < 2) {
    throw RequestError("ranks", std::to_string(ranks), "a communication needs two ranks", "start the probe with -n 2");
  }
  check_extraneous_job(request, hosts);
  check_overlap_job(request, hosts);
  const auto distinct = static_cast<int>(std::set<std::string>(hosts.begin(), hosts.end()).size());
  if (request.hosts > distinct) {
    throw RequestError("hosts", std::to_string(request.hosts),
                       fmt::format("the request needs {} hosts, the job has {}", request.hosts, distinct),
                       "give more hosts to the launcher");
  }
  for (const auto& [rank, placement] : request.placements) {
    if (rank < 0 || rank >= ranks) {
      throw RequestError("placements.rank", std::to_string(rank), fmt::format("rank {} does not exist", rank),
                         fmt::format("ranks here: 0-{}", ranks - 1));
    }
  }
  const std::optional<Claim> taken = clash(claims(request, hosts), true);
  if (taken && !request.scheduling) {
    throw RequestError(taken->field, std::to_string(taken->core),
                       fmt::format("core {} of host {} would run a computing thread beside a thread of another rank",
                                   taken->core, taken->host),
                       "give each rank cores of its own (placements), or let only the first rank compute");
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const Placement placement = placement_of(request, rank, hosts[static_cast<std::size_t>(rank)] == hosts.front());
    if (request.pattern == Pattern::ring && communicating &&
        placement.comm_cores.size() != placement_of(request, 0, true).comm_cores.size()) {
      throw RequestError(rank == 0 ? "comm_cores" : "peer_cores", std::to_string(placement.comm_cores.size()),
                         "all ranks of a ring need the same number of communication cores",
                         "give as many peer_cores as comm_cores");
    }
  }
}

bool shares_communication_core(const Request& request, const std::vector<std::string>& hosts) {
  return clash(claims(request, hosts), false).has_value();
}

bool shares_computing_core(const Request& request, const std::vector<std::string>& hosts) {
  return clash(claims(request, hosts), true).has_value();
}

}  // namespace elbowroom
