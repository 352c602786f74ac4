// Checks of a request with extraneous accesses.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "protocol/extraneous.hpp"
#include "protocol/message_layout.hpp"
#include "protocol/request.hpp"

namespace elbowroom {
namespace {

constexpr std::int64_t kMostMessages = 10'000'000;  // of a window: two readings of the clock are kept of each
constexpr std::int64_t kMostBytes = std::numeric_limits<std::int64_t>::max() / 4;

void at_least(std::int64_t value, std::int64_t least, const char* field) {
  if (value < least) {
    throw RequestError(field, fmt::format("{}", value), fmt::format("{} must be at least {}", field, least),
                       fmt::format("give {} or more", least));
  }
}

void check_window(const Extraneous& extraneous) {
  at_least(extraneous.first, 0, "extraneous.first");
  at_least(extraneous.step, 1, "extraneous.step");
  at_least(extraneous.count, 1, "extraneous.count");
  at_least(extraneous.exchanges, 1, "extraneous.exchanges");
  if (extraneous.count > kMostMessages / extraneous.exchanges) {
    throw RequestError("extraneous.count", fmt::format("{}", extraneous.count),
                       fmt::format("a window has at most {} messages, and {} for each size are requested",
                                   kMostMessages, extraneous.exchanges),
                       "ask for fewer sizes in one request, or for fewer exchanges");
  }
  if (extraneous.first > kMostBytes || extraneous.step > kMostBytes / extraneous.count) {
    throw RequestError("accesses", fmt::format("{}", std::max(extraneous.first, extraneous.step)),
                       "the accesses are larger than any memory", "give smaller sizes");
  }
}

[[noreturn]] void only(const char* field, const std::string& value, const char* wanted) {
  throw RequestError(field, value, fmt::format("extraneous accesses are measured with {} {} only", field, wanted),
                     fmt::format("give {}", wanted));
}

// Bytes that this window needs on a node of the host, of both ranks and the bystanders.
std::int64_t bytes_needed(const Request& request, int node) {
  const Extraneous& extraneous = *request.extraneous;
  std::int64_t arrays = 0;
  std::int64_t messages = 0;
  for (const int rank : {0, 1}) {
    const Placement placement = placement_of(request, rank, true);
    if (placement.comm_node == node) {
      arrays += extraneous.touches(rank) ? 1 : 0;
      messages += least_message_bytes(request, 1);
    }
    if (has_bystanders(request, rank) && placement.comp_node == node) {
      arrays += static_cast<std::int64_t>(placement.comp_cores.size());
    }
  }
  return arrays > 0 && extraneous.largest() > kMostBytes / arrays - messages ? kMostBytes
                                                                             : arrays * extraneous.largest() + messages;
}

}  // namespace

bool has_bystanders(const Request& request, int rank) {
  return rank == 0 && request.extraneous && request.extraneous->who == Who::bystanders;
}

void check_extraneous(const Request& request) {
  if (!request.extraneous) {
    return;
  }
  check_window(*request.extraneous);
  if (request.sequence != std::vector<Phase>{Phase::communication, Phase::together}) {
    std::string names;
    for (const Phase phase : request.sequence) {
      names += fmt::format("{}{}", names.empty() ? "" : " ", name_of(phase));
    }
    only("sequence", names, "[\"B\", \"AB\"]");
  }
  if (request.kernel != "none") {
    only("kernel", request.kernel, "none");
  }
  if (request.pattern != Pattern::pingpong) {
    only("pattern", name_of(request.pattern), "pingpong");
  }
  if (request.reuse != Reuse::same) {
    only("reuse", name_of(request.reuse), "same");
  }
  if (!request.latency) {
    only("metric", "bandwidth", "latency");
  }
}

void check_extraneous_job(const Request& request, const std::vector<std::string>& hosts) {
  if (!request.extraneous) {
    return;
  }
  if (hosts.size() != 2) {
    throw RequestError("ranks", fmt::format("{}", hosts.size()), "extraneous accesses are measured between two ranks",
                       "start the probe with -n 2");
  }
  if (hosts.front() != hosts.back()) {
    throw RequestError(
        "hosts", "2",
        fmt::format("a one-way time is a difference of two ranks' times, and the clocks of {} and {} are "
                    "not one",
                    hosts.front(), hosts.back()),
        "start both ranks on one host");
  }
}

void check_extraneous_site(const Request& request, const Placement& placement, const Site& site) {
  if (!request.extraneous) {
    return;
  }
  const std::vector<int> sender = placement_of(request, 0, true).comm_cores;
  const std::vector<int> receiver = placement_of(request, 1, true).comm_cores;
  if (!sender.empty() && !receiver.empty() && site.same_core(sender.front(), receiver.front())) {
    throw RequestError("peer_cores", std::to_string(receiver.front()),
                       "sender and receiver would share a core, where one sleeps while the other works: that times the "
                       "scheduler and not the message",
                       "name another core for the receiver (peer_cores) than for the sender (comm_cores)");
  }
  for (const SiteNode& node : site.nodes) {
    if (node.number != placement.comm_node && node.number != placement.comp_node) {
      continue;
    }
    if (bytes_needed(request, node.number) > node.memory) {
      throw RequestError("accesses", fmt::format("{}", request.extraneous->largest()),
                         fmt::format("the arrays that are touched are larger than the memory of node {}", node.number),
                         fmt::format("the node has {} bytes available", node.memory));
    }
  }
}

}  // namespace elbowroom
