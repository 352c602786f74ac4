#include "caches/counted.hpp"

#include <linux/perf_event.h>

#include <algorithm>
#include <utility>

namespace elbowroom {
namespace {

constexpr std::uint64_t of_cache(std::uint64_t cache, std::uint64_t operation, std::uint64_t result) {
  return cache | operation << 8 | result << 16;
}

constexpr int kReadings = 16;  // of which the least is what a reading costs

}  // namespace

CountedEvents miss_events(const ProcessorEvents& processor) {
  const auto misses = [](std::uint64_t cache) {
    return CountedEvent{PERF_TYPE_HW_CACHE,
                        of_cache(cache, PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_MISS), ""};
  };
  CountedEvent nearest = misses(PERF_COUNT_HW_CACHE_L1D);
  if (processor.l1_misses) {
    nearest = {PERF_TYPE_RAW, processor.l1_misses->config, ""};
  }
  CountedEvent second{PERF_TYPE_RAW, 0, "no event of this processor for misses of this level is known"};
  if (processor.l2_misses) {
    second = {PERF_TYPE_RAW, processor.l2_misses->config, ""};
  }
  return {nearest, misses(PERF_COUNT_HW_CACHE_LL), second};
}

CountedEvents work_events() {
  return {CountedEvent{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, ""},
          CountedEvent{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, ""},
          CountedEvent{
              PERF_TYPE_HW_CACHE,
              of_cache(PERF_COUNT_HW_CACHE_L1D, PERF_COUNT_HW_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_RESULT_ACCESS), ""}};
}

Counter MissCounters::opened(std::uint32_t type, std::uint64_t config) { return {type, config, false}; }

MissCounters::MissCounters(CountedEvents events, const std::function<Counter(std::uint32_t, std::uint64_t)>& open)
    : events_(std::move(events)) {
  for (const CountedEvent& event : events_) {
    counters_.push_back(event.absent.empty() ? open(event.type, event.config) : Counter(~std::uint32_t{0}, 0, false));
  }
}

MissCounters MissCounters::of_time() {
  return MissCounters(
      {}, [](std::uint32_t, std::uint64_t) { return Counter(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, true); });
}

bool MissCounters::works() const {
  return std::any_of(counters_.begin(), counters_.end(), [](const Counter& counter) { return counter.works(); });
}

MissCounters::Counts MissCounters::read() const {
  return {counters_[0].read_whole(), counters_[1].read_whole(), counters_[2].read_whole()};
}

std::string MissCounters::reason(Which which) const {
  if (!events_[which].absent.empty()) {
    return events_[which].absent;
  }
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
  const MissCounters::Counts nothing{0.0, 0.0, 0.0};
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
  sum_ = {0.0, 0.0, 0.0};
  messages_ = 0;
  return mean;
}

}  // namespace elbowroom
