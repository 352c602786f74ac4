#include "caches/counted.hpp"

#include <linux/perf_event.h>

#include <algorithm>
#include <utility>

namespace elbowroom {
namespace {

constexpr std::uint64_t read_misses(std::uint64_t cache) {
  return cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
}

constexpr int kReadings = 16;  // of which the least is what a reading costs

constexpr std::array<std::uint64_t, 2> kMissEvents = {read_misses(PERF_COUNT_HW_CACHE_L1D),
                                                      read_misses(PERF_COUNT_HW_CACHE_LL)};

}  // namespace

Counter MissCounters::opened(std::uint32_t type, std::uint64_t config) { return {type, config, false}; }

MissCounters::MissCounters(const std::function<Counter(std::uint32_t, std::uint64_t)>& open) {
  for (const std::uint64_t event : kMissEvents) {
    counters_.push_back(open(PERF_TYPE_HW_CACHE, event));
  }
}

MissCounters MissCounters::of_time() {
  return MissCounters(
      [](std::uint32_t, std::uint64_t) { return Counter(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, true); });
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

MessageCounter::MessageCounter(MissCounters counters) : counters_(std::move(counters)) {
  const MissCounters::Counts nothing{0.0, 0.0};
  for (int i = 0; i < kReadings; ++i) {
    const auto first = counters_.read();
    const auto cost = between(first, counters_.read(), nothing);
    for (std::size_t which = 0; which < cost.size(); ++which) {
      reading_[which] =
          i == 0 || !cost[which] || !reading_[which] ? cost[which] : std::min(*cost[which], *reading_[which]);
    }
  }
}

void MessageCounter::after() {
  const auto counts = between(start_, counters_.read(), reading_);
  for (std::size_t which = 0; which < counts.size(); ++which) {
    sum_[which] = sum_[which] && counts[which] ? std::optional(*sum_[which] + *counts[which]) : std::nullopt;
  }
  ++messages_;
}

MissCounters::Counts MessageCounter::take() {
  MissCounters::Counts mean;
  for (std::size_t which = 0; which < mean.size(); ++which) {
    if (sum_[which] && messages_ > 0) {
      mean[which] = *sum_[which] / messages_;
    }
  }
  sum_ = {0.0, 0.0};
  messages_ = 0;
  return mean;
}

}  // namespace elbowroom
