// Recording and reading again: what is kept, what is lost, what is off.
#include "elbowroom/trace.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <thread>

#include "trace/test_trace.hpp"

using namespace elbowroom::trace;
using namespace elbowroom::trace::tests;

TEST_CASE("What is recorded is read again, in order and to the bit") {
  Traced traced;
  CHECK(traced.run([] {
    const auto* type = elbow_trace_type_new("solve", elbow_trace_category("task"), "block", "row", "cells");
    MUST(type != nullptr && elbow_trace_thread("main") == 0);
    for (std::uint32_t i = 0; i < 1000; ++i) {
      elbow_trace_begin(type, i, i * 3ULL, ~0ULL - i);
    }
    const elbow_trace_summary summary = stopped();
    MUST(summary.recorded == 1000 && summary.kept == 1000 && summary.threads == 1);
  }) == 0);
  const RingContents contents = traced.ring();
  CHECK(contents.damage.empty());
  CHECK(contents.ended);
  CHECK(std::string(contents.header.name) == "main");
  REQUIRE(contents.events.size() == 1000);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const elbow_trace_slot& event = contents.events[i];
    CHECK((event.small == i && event.first == i * 3ULL && event.second == ~0ULL - i));
    CHECK(event.kind == ELBOW_TRACE_BEGIN);
  }
  const auto types = traced.lines("type");
  CHECK(types.back().at("name") == "solve");
  CHECK(types.back().at("number") == contents.events[0].type);
  // Nothing stays in memory.
  const auto& path = traced.folder().path;
  CHECK(std::distance(std::filesystem::directory_iterator(path), std::filesystem::directory_iterator()) == 1);
}

TEST_CASE("A full ring keeps the first events, and counts the others") {
  Traced traced;
  traced.settings.bytes = 64 * 32;
  CHECK(traced.run([] {
    const auto* type = type_of("a", "i");
    for (std::uint64_t i = 0; i < 1000; ++i) {
      elbow_trace_event(type, 0, i, 0);
    }
    const elbow_trace_summary summary = stopped();
    MUST(summary.recorded == 1000 && summary.kept == 64 && summary.advised == 1024 * 32);
  }) == 0);
  const RingContents contents = traced.ring();
  const auto events = kept(contents);
  REQUIRE(events.size() == 64);
  CHECK(contents.lost == 936);
  CHECK(marked(contents) == 936);
  CHECK(contents.events.back().kind == ELBOW_TRACE_LOST);
  CHECK(events.front().first == 0);
  CHECK(events.back().first == 63);
}

TEST_CASE("A flight recorder keeps the last events, in order, behind a mark of how many are missing") {
  Traced traced;
  traced.settings.bytes = 64 * 32;
  traced.settings.policy = ELBOW_TRACE_OVERWRITE;
  CHECK(traced.run([] {
    const auto* type = type_of("a", "i");
    for (std::uint64_t i = 0; i < 1000; ++i) {
      elbow_trace_event(type, 0, i, 0);
    }
    MUST(stopped().kept == 64);
  }) == 0);
  const RingContents contents = traced.ring();
  CHECK(contents.damage.empty());
  CHECK(contents.events.front().kind == ELBOW_TRACE_LOST);
  CHECK(marked(contents) == 936);
  const auto events = kept(contents);
  REQUIRE(events.size() == 64);
  CHECK(events.front().first == 936);
  CHECK(events.back().first == 999);
}

TEST_CASE("Categories and types that are off are not recorded; a change of the mask is an event") {
  Traced traced;
  traced.settings.categories = "task,mpi";
  CHECK(traced.run([] {
    const int task = elbow_trace_category("task");
    const int noise = elbow_trace_category("noise");
    const auto* wanted = elbow_trace_type_new("wanted", task, nullptr, nullptr, nullptr);
    const auto* other = elbow_trace_type_new("other", task, nullptr, nullptr, nullptr);
    const auto* off = elbow_trace_type_new("off", noise, nullptr, nullptr, nullptr);
    elbow_trace_event(wanted, 1, 0, 0);
    elbow_trace_event(off, 2, 0, 0);
    MUST(elbow_trace_filter(other, 0) == 0);
    elbow_trace_event(other, 3, 0, 0);
    MUST(elbow_trace_filter(other, 1) == 0);
    elbow_trace_event(other, 4, 0, 0);
    elbow_trace_set_mask(1ULL << noise);
    elbow_trace_event(off, 5, 0, 0);
    elbow_trace_event(wanted, 6, 0, 0);
  }) == 0);
  std::vector<std::uint32_t> values;
  for (const auto& event : traced.ring().events) {
    values.push_back(event.kind == ELBOW_TRACE_MASK ? 100 : event.small);
  }
  CHECK(values == std::vector<std::uint32_t>{1, 4, 100, 5});
}

TEST_CASE("Each thread has its ring, and none loses an event of another") {
  Traced traced;
  CHECK(traced.run([] {
    const auto* type = elbow_trace_type_new("a", elbow_trace_category("c"), "thread", "i", nullptr);
    std::vector<std::thread> threads;
    for (std::uint32_t thread = 0; thread < 4; ++thread) {
      threads.emplace_back([=] {
        elbow_trace_thread(("worker " + std::to_string(thread)).c_str());
        for (std::uint64_t i = 0; i < 20'000; ++i) {
          elbow_trace_event(type, thread, i, 0);
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
    const elbow_trace_summary summary = stopped();
    MUST(summary.threads == 4 && summary.kept == 80'000);
  }) == 0);
  for (int thread = 0; thread < 4; ++thread) {
    const RingContents contents = traced.ring(thread);
    REQUIRE(contents.events.size() == 20'000);
    for (std::uint64_t i = 0; i < 20'000; i += 999) {
      CHECK(contents.events[i].first == i);
      CHECK(contents.events[i].small == contents.events[0].small);
    }
  }
}

TEST_CASE("What each category cost is told, in the summary and in the last line; of lost events nobody knows it") {
  Traced traced;
  traced.settings.bytes = 64 * 32;
  CHECK(traced.run([] {
    const auto* often = type_of("often");
    const int rare = elbow_trace_category("rare");
    elbow_trace_event(elbow_trace_type_new("once", rare, nullptr, nullptr, nullptr), 0, 0, 0);
    for (int i = 0; i < 100; ++i) {
      elbow_trace_event(often, 0, 0, 0);
    }
    std::uint64_t events = 0;
    double overhead_ns = 0;
    MUST(elbow_trace_cost(rare, &events, &overhead_ns) == -1 && errno == EINVAL);
    const elbow_trace_summary summary = stopped();
    MUST(elbow_trace_cost(rare, &events, &overhead_ns) == 0);
    MUST(events == 1 && overhead_ns == summary.event_ns);
    MUST(summary.overhead_ns >= 64 * summary.event_ns);
    char text[512];
    MUST(elbow_trace_describe(&summary, text, sizeof text) > 0);
    MUST(std::string(text).find("kept 64 events of 1 threads, lost 37; at most 101 waited in a ring of 64") == 0);
  }) == 0);
  const auto end = traced.lines("end").at(0);
  CHECK(end.at("lost") == 37);
  const auto& categories = end.at("categories");
  REQUIRE(categories.size() == 3);
  CHECK(categories[0].at("name") == "c");
  CHECK(categories[0].at("events") == 63);
  CHECK(categories[1].at("events") == 1);
  CHECK(categories[2].at("name") == "trace");
  CHECK(categories[0].at("overhead_ns").get<double>() == doctest::Approx(63 * end.at("event_ns").get<double>()));
}

TEST_CASE("The counter is told beside the kernel's clock at the start and at the end") {
  Traced traced;
  CHECK(traced.run([] { stopped(); }) == 0);
  const auto first = traced.lines("trace").at(0);
  const auto clocks = traced.lines("clock");
  if (!first.at("clock").at("counter").get<bool>()) {
    CHECK(clocks.empty());
    return;
  }
  REQUIRE(clocks.size() == 2);
  for (const auto& clock : clocks) {
    const auto apart = clock.at("local").get<std::int64_t>() - clock.at("raw_ns").get<std::int64_t>();
    CHECK(std::abs(apart) < 1'000'000);
  }
  CHECK(clocks[0].at("ticks") < clocks[1].at("ticks"));
}

TEST_CASE("Sync points are in the times of events, as the clock that was compared is theirs") {
  Traced traced;
  auto point = elbowroom::c_interface::sized<elbow_clock_sync_point>();
  CHECK(traced.run([&] {
    auto peers = elbowroom::c_interface::sized<elbow_clock_peers>();
    peers.ranks = 1;
    elbow_clock* clock = elbow_clock_new(&peers);
    MUST(clock != nullptr && elbow_clock_synchronise(clock, &point) == 0);
    MUST(elbow_trace_sync(clock, &point) == 0);
    auto own = elbowroom::c_interface::sized<elbow_clock_calibration>();
    MUST(elbow_clock_calibrated(nullptr, &own) == 0);
    const auto line = traced.lines("sync").at(0);
    MUST(line.at("same_source") == true);
    MUST(line.at("jumped") == false);
    MUST(std::abs(line.at("local").get<std::int64_t>() - point.local) <= 1);
    MUST(line.at("local").get<std::int64_t>() + line.at("offset").get<std::int64_t>() == point.local + point.offset);
    elbow_clock_free(clock);
  }) == 0);
}
