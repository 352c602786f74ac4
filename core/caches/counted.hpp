// Cache misses and work that the processor counts, of the calling thread and of its own code only.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "observe/counters.hpp"
#include "observe/processor_events.hpp"

namespace elbowroom {

struct CountedEvent {
  std::uint32_t type = 0;  // as perf_event_attr has them
  std::uint64_t config = 0;
  std::string absent;  // why there is no such event; empty when there is
};

// As many as are counted at once: few enough for the registers of any processor.
using CountedEvents = std::array<CountedEvent, 3>;

// Misses of reads in the nearest level and in the last, which perf_event has names for on every processor, and in the
// second, whose event differs from one processor to the next.
CountedEvents miss_events(const ProcessorEvents& processor);
// Instructions, cycles, and writes to the nearest level.
CountedEvents work_events();

class MissCounters {
 public:
  enum Which : std::size_t { nearest = 0, last = 1, second = 2, instructions = 0, cycles = 1, writes = 2 };
  using Counts = std::array<std::optional<double>, 3>;

  // `open` makes a counter of type and configuration.
  explicit MissCounters(CountedEvents events = miss_events(processor_events_here()),
                        const std::function<Counter(std::uint32_t, std::uint64_t)>& open = opened);
  // The thread's time in place of each event: for tests on machines that have no counters.
  static MissCounters of_time();

  bool works() const;
  Counts read() const;
  // Why an event cannot be counted; empty when it can.
  std::string reason(Which which) const;

 private:
  static Counter opened(std::uint32_t type, std::uint64_t config);
  CountedEvents events_;
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
  // Counts of one message on average since the last call; absent where one of them could not be counted, or none was.
  MissCounters::Counts take();

 private:
  MissCounters counters_;
  MissCounters::Counts reading_;  // what a reading counts itself, at least
  MissCounters::Counts start_;
  MissCounters::Counts sum_{0.0, 0.0, 0.0};
  int messages_ = 0;
};

}  // namespace elbowroom
