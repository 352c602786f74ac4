#include "caches/counted.hpp"

#include <doctest/doctest.h>
#include <linux/perf_event.h>

using namespace elbowroom;

TEST_CASE("misses are counted by the processor, or absent with the reason") {
  const MissCounters counters;
  const auto before = counters.read();
  std::vector<int> memory(1 << 20, 1);
  const auto after = counters.read();
  for (const auto which : {MissCounters::nearest, MissCounters::last, MissCounters::second}) {
    if (counters.reason(which).empty()) {
      REQUIRE(after[which].has_value());
      CHECK(*after[which] >= *before[which]);
    } else {
      CHECK_FALSE(after[which].has_value());
    }
  }
}

TEST_CASE("a processor without such events has no counts, never zero") {
  const MissCounters counters(work_events(),
                              [](std::uint32_t, std::uint64_t) { return Counter(~std::uint32_t{0}, 0, false); });
  CHECK_FALSE(counters.works());
  CHECK_FALSE(counters.read()[MissCounters::last].has_value());
  CHECK_FALSE(counters.reason(MissCounters::last).empty());
}

TEST_CASE(
    "events are those of reads that miss in the last and, where the processor's are known, in the nearer levels") {
  using Event = std::pair<std::uint32_t, std::uint64_t>;
  for (const bool known : {false, true}) {
    std::vector<Event> opened;
    ProcessorEvents processor;
    if (known) {
      processor.l1_misses = {"L1D.REPLACEMENT", 0x0151};
      processor.l2_misses = {"L2_RQSTS.MISS", 0x3f24};
    }
    const MissCounters counters(miss_events(processor), [&](std::uint32_t type, std::uint64_t config) {
      opened.emplace_back(type, config);
      return Counter(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, true);
    });
    const Event last{PERF_TYPE_HW_CACHE, 0x10002};
    CHECK((opened == (known ? std::vector<Event>{{PERF_TYPE_RAW, 0x0151}, last, {PERF_TYPE_RAW, 0x3f24}}
                            : std::vector<Event>{{PERF_TYPE_HW_CACHE, 0x10000}, last})));
    // Stands for the processor's own; where the kernel counts nothing (qemu-user, some containers) there is none.
    if (Counter(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, true).works()) {
      CHECK(counters.reason(MissCounters::second).empty() == known);
    }
  }
}

TEST_CASE("what reading the counters costs is taken off, and what one reading lacks is absent") {
  const auto counts = between({10.0, 5.0, 1.0}, {30.0, std::nullopt, 1.0}, {2.0, 1.0, 0.0});
  CHECK(counts[MissCounters::nearest] == 18.0);
  CHECK_FALSE(counts[MissCounters::last].has_value());
}

TEST_CASE("what happens between before and after is averaged over the messages, nothing else is") {
  MessageCounter counter(MissCounters::of_time());
  if (!counter.works()) {
    MESSAGE("skipped: the kernel counts no thread's time");
    return;
  }
  CHECK_FALSE(counter.take()[MissCounters::nearest].has_value());
  volatile std::uint64_t sum = 0;
  const auto work = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      sum = sum + 1;
    }
  };
  counter.before();
  work(3'000'000);
  counter.after();
  work(30'000'000);
  counter.before();
  counter.after();
  const auto mean = counter.take();
  counter.before();
  work(30'000'000);
  counter.after();
  const auto longer = counter.take();
  REQUIRE(mean[MissCounters::nearest].has_value());
  CHECK(*mean[MissCounters::nearest] > 0);
  CHECK(*longer[MissCounters::last] > *mean[MissCounters::last]);
}
