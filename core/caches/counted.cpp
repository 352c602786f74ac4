#include "caches/counted.hpp"

#include <linux/perf_event.h>

namespace elbowroom {
namespace {

constexpr std::uint64_t read_misses(std::uint64_t cache) {
  return cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
}

constexpr std::array<std::uint64_t, 2> events = {read_misses(PERF_COUNT_HW_CACHE_L1D),
                                                 read_misses(PERF_COUNT_HW_CACHE_LL)};

}  // namespace

Counter MissCounters::opened(std::uint32_t type, std::uint64_t config) { return {type, config, false}; }

MissCounters::MissCounters(const std::function<Counter(std::uint32_t, std::uint64_t)>& open) {
  for (const std::uint64_t event : events) {
    counters_.push_back(open(PERF_TYPE_HW_CACHE, event));
  }
}

bool MissCounters::works() const { return counters_[nearest].works() || counters_[last].works(); }

MissCounters::Counts MissCounters::read() const { return {counters_[nearest].read(), counters_[last].read()}; }

std::string MissCounters::reason(Which which) const {
  return counters_[which].works() ? "" : counter_reason_here(counters_[which].error());
}

MissCounters::Counts between(const MissCounters::Counts& before, const MissCounters::Counts& after,
                             const MissCounters::Counts& reading) {
  MissCounters::Counts counts;
  for (std::size_t which = 0; which < counts.size(); ++which) {
    if (before[which] && after[which] && reading[which]) {
      counts[which] = *after[which] - *before[which] - *reading[which];
    }
  }
  return counts;
}

}  // namespace elbowroom
