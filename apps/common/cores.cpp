#include "common/cores.hpp"

#include <fmt/format.h>

#include "base/request_error.hpp"
#include "common/together.hpp"
#include "machine/machine.hpp"

namespace elbowroom::program {
namespace {

using nlohmann::json;

struct BusySeat {
  BusyThread thread;
  int rank;
  std::string host;
};

std::string cores_here() {
  std::string text;
  for (const CoreInfo& core : Machine::here().cores()) {
    text += core.allowed ? fmt::format("{}{}", text.empty() ? "" : ", ", core.number) : "";
  }
  return text;
}

void check_cores(const std::vector<BusyThread>& own) {
  for (const BusyThread& thread : own) {
    const CoreInfo* core = Machine::here().core(thread.core);
    if (core == nullptr || !core->allowed) {
      throw RequestError(thread.field, std::to_string(thread.core),
                         fmt::format("core {} {}", thread.core,
                                     core == nullptr ? "does not exist" : "is outside the cpuset of this process"),
                         "cores here: " + cores_here());
    }
  }
}

std::vector<BusySeat> seats_of(const Job& job, const std::vector<BusyThread>& own) {
  json mine = json::array();
  for (const BusyThread& thread : own) {
    mine.push_back({{"what", thread.what}, {"core", thread.core}, {"field", thread.field}, {"yields", thread.yields}});
  }
  std::vector<BusySeat> seats;
  int rank = 0;
  for (const json& threads : gathered(job, mine)) {
    for (const json& one : threads) {
      seats.push_back({{one.at("what"), one.at("core"), one.at("field"), one.at("yields")},
                       rank,
                       job.hosts()[static_cast<std::size_t>(rank)]});
    }
    ++rank;
  }
  return seats;
}

}  // namespace

bool place(const Job& job, const std::vector<BusyThread>& own, bool scheduling) {
  together(job, [&] { check_cores(own); });
  const std::vector<BusySeat> seats = seats_of(job, own);
  bool shared = false;
  for (std::size_t i = 0; i < seats.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const BusySeat &one = seats[j], &other = seats[i];
      if (one.host != other.host || one.thread.core != other.thread.core) {
        continue;
      }
      shared = true;
      if (scheduling || (one.thread.yields && other.thread.yields)) {
        continue;
      }
      // The one that does not yield is the one that is in the way.
      const BusySeat& named = other.thread.yields ? one : other;
      throw RequestError(
          named.thread.field, std::to_string(named.thread.core),
          fmt::format("{} of rank {} and {} of rank {} would share core {}: each waits for the other's time slice "
                      "to end",
                      one.thread.what, one.rank, other.thread.what, other.rank, named.thread.core),
          "give each a core of its own, or `scheduling = true` in the plan to measure the scheduler on purpose");
    }
  }
  return shared;
}

Settings own_settings(const Job& job, std::size_t threads) {
  std::vector<int> cores;
  for (const CoreInfo& core : Machine::here().cores()) {
    if (core.allowed) {
      cores.push_back(core.number);
    }
  }
  const std::size_t each = threads + 1;
  const auto ranks = static_cast<std::size_t>(job.ranks_on_host_of(job.rank()));
  if (cores.size() < each) {
    throw RequestError("threads", std::to_string(threads),
                       fmt::format("{} cores are needed, one to communicate; there are {}", each, cores.size()),
                       cores.size() > 1 ? fmt::format("give {} or less", cores.size() - 1)
                                        : "let the launcher bind ranks to no core, or to several");
  }
  Settings settings;
  settings.scheduling = cores.size() < each * ranks;
  std::map<std::string, std::size_t> seated;  // ranks so far, by host
  for (int rank = 0; rank < job.size(); ++rank) {
    const std::size_t local = seated[job.hosts()[static_cast<std::size_t>(rank)]]++;
    const auto begin = cores.begin() + static_cast<std::ptrdiff_t>(settings.scheduling ? 0 : local * each);
    const std::vector<int> computing(begin + 1, begin + static_cast<std::ptrdiff_t>(each));
    settings.placements.emplace_back(rank, Placement{computing, {*begin}, kNearest, kNearest});
  }
  return settings;
}

}  // namespace elbowroom::program
