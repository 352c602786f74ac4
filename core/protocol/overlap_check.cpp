// Checks of a request with an operation beside a computation.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "protocol/overlap.hpp"
#include "protocol/request.hpp"

namespace elbowroom {
namespace {

constexpr int kFewestNeighbours = 2;
constexpr int kMostNeighbours = 26;
constexpr std::int64_t kMostOfAKind = 1'000'000;
constexpr std::int64_t kElement = sizeof(float);

void check_sequence(const Request& request) {
  const std::vector<Phase> wanted = request.kernel == "none"
                                        ? std::vector<Phase>{Phase::communication}
                                        : std::vector<Phase>{Phase::communication, Phase::computation, Phase::together};
  if (request.sequence != wanted) {
    throw RequestError("sequence", "", "an operation beside a computation has one order of phases",
                       request.kernel == "none" ? "give [\"B\"]" : "give [\"B\", \"A\", \"AB\"]");
  }
}

void check_size(const Request& request) {
  if (reduces(request.overlap->operation) && request.size % kElement != 0) {
    throw RequestError("size", fmt::format("{}", request.size), "reductions add numbers of 4 bytes",
                       "give a multiple of 4");
  }
}

void check_progress_core(const Request& request, const Placement& placement, const Site& site, int rank) {
  const std::vector<int>& cores = request.overlap->progress_cores;
  if (static_cast<std::size_t>(rank) >= cores.size()) {
    throw RequestError("overlap.progress_cores", std::to_string(cores.size()),
                       fmt::format("rank {} has no core for its progress thread", rank), "name a core for each rank");
  }
  const int core = cores[static_cast<std::size_t>(rank)];
  const SiteCore* known = site.core(core);
  if (known == nullptr || !known->allowed) {
    throw RequestError("overlap.progress_cores", std::to_string(core),
                       fmt::format("core {} does not exist or is outside the cpuset of this job", core),
                       "name a core of this job");
  }
  for (const int busy : request.kernel == "none" ? placement.comm_cores : placement.comp_cores) {
    if (site.same_core(busy, core)) {
      throw RequestError("overlap.progress_cores", std::to_string(core),
                         fmt::format("progress core {} is among the computing cores", core),
                         "name a core for the progress thread that nothing computes on");
    }
  }
}

}  // namespace

void check_overlap(const Request& request) {
  if (!request.overlap) {
    return;
  }
  const Overlap& overlap = *request.overlap;
  check_sequence(request);
  check_size(request);
  if (overlap.neighbours < kFewestNeighbours || overlap.neighbours > kMostNeighbours) {
    throw RequestError("overlap.neighbours", fmt::format("{}", overlap.neighbours),
                       fmt::format("an exchange has {} to {} neighbours", kFewestNeighbours, kMostNeighbours),
                       "give a number between");
  }
  if (overlap.iterations < 0 || overlap.iterations > kMostOfAKind) {
    throw RequestError("overlap.iterations", fmt::format("{}", overlap.iterations),
                       fmt::format("there are at most {} iterations of a kind", kMostOfAKind),
                       "give fewer, or 0 for as many as the window has room for");
  }
  if (overlap.form == Form::blocking && overlap.progress != Progress::none) {
    throw RequestError("overlap.progress", "",
                       "a blocking call is complete when it returns: nothing is left to progress",
                       "give none, or the form nonblocking or persistent");
  }
}

void check_overlap_job(const Request& request, const std::vector<std::string>& hosts) {
  if (!request.overlap) {
    return;
  }
  const auto ranks = static_cast<int>(hosts.size());
  const Overlap& overlap = *request.overlap;
  const auto most = std::numeric_limits<int>::max();
  if (overlap_bytes(overlap, request.size, ranks).received > most) {
    throw RequestError("size", fmt::format("{}", request.size),
                       fmt::format("{} ranks receive more than {} bytes, which MPI counts with an int", ranks, most),
                       "give a smaller size, or fewer ranks");
  }
  if (overlap.late_rank >= ranks || overlap.late_seconds < 0) {
    throw RequestError("overlap.late.rank", std::to_string(overlap.late_rank),
                       fmt::format("rank {} does not exist", overlap.late_rank),
                       fmt::format("ranks here: 0-{}", ranks - 1));
  }
}

void check_overlap_site(const Request& request, const Placement& placement, const Site& site, int rank, int ranks,
                        int sharers) {
  if (!request.overlap) {
    return;
  }
  if (!placement.comp_cores.empty() && !placement.comm_cores.empty() && request.kernel != "none" &&
      placement.comm_cores.front() != placement.comp_cores.front()) {
    throw RequestError("comm_cores", std::to_string(placement.comm_cores.front()),
                       "the thread that calls MPI computes too, on the first computing core of its rank",
                       fmt::format("give {}", placement.comp_cores.front()));
  }
  if (request.overlap->progress == Progress::thread) {
    check_progress_core(request, placement, site, rank);
  }
  const std::int64_t need = overlap_bytes(*request.overlap, request.size, ranks).all();
  for (const SiteNode& node : site.nodes) {
    if (node.number == placement.comm_node && need > node.memory / std::max(sharers, 1)) {
      throw RequestError(
          "size", fmt::format("{}", request.size),
          fmt::format("the messages of {} ranks are larger than the memory of node {}", sharers, placement.comm_node),
          fmt::format("the node has {} bytes available", node.memory));
    }
  }
}

}  // namespace elbowroom
