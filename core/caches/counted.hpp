// Cache misses that the processor counts, of the calling thread and of its own code only.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "observe/counters.hpp"

namespace elbowroom {

// Misses of reads in the nearest level and of reads in the last: what perf_event has names for on every processor. Levels
// between have none: their events differ from one processor to the next.
class MissCounters {
 public:
  enum Which : std::size_t { nearest = 0, last = 1 };
  using Counts = std::array<std::optional<double>, 2>;

  // `open` makes a counter of type and configuration, as perf_event_attr has them.
  explicit MissCounters(const std::function<Counter(std::uint32_t, std::uint64_t)>& open = opened);
  // The thread's time in place of misses: for tests on machines that have no counters.
  static MissCounters of_time();

  bool works() const;
  Counts read() const;
  // Why a level cannot be counted; empty when it can.
  std::string reason(Which which) const;

 private:
  static Counter opened(std::uint32_t type, std::uint64_t config);
  std::vector<Counter> counters_;
};

// What happened between two readings, less what two readings alone count: absent where either is.
MissCounters::Counts between(const MissCounters::Counts& before, const MissCounters::Counts& after,
                             const MissCounters::Counts& reading);

// Counts what happens between before() and after(), message by message.
class MessageCounter {
 public:
  explicit MessageCounter(MissCounters counters);

  bool works() const { return counters_.works(); }
  std::string reason(MissCounters::Which which) const { return counters_.reason(which); }
  void before() { start_ = counters_.read(); }
  void after();
  // Misses of one message on average since the last call; absent where one of them could not be counted, or none was.
  MissCounters::Counts take();

 private:
  MissCounters counters_;
  MissCounters::Counts reading_;  // what a reading counts itself, at least
  MissCounters::Counts start_;
  MissCounters::Counts sum_{0.0, 0.0};
  int messages_ = 0;
};

}  // namespace elbowroom
