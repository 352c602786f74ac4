#include "trace/merge/part.hpp"

#include <doctest/doctest.h>

#include "trace/merge/synthetic_trace.hpp"
#include "trace/merge/test_collected.hpp"
#include "trace/outputs/test_job.hpp"

using namespace elbowroom::trace;

namespace {

// A long call around everything, a short one, a counter, a region of interest, and a message each µs.
struct Long {
  TestFolder folder;
  SyntheticTrace trace{folder.file("trace")};
  Collected got;

  Long() {
    const auto outer = trace.type("outer", trace.category("work"), {"", "i", ""});
    const auto inner = trace.type("inner", trace.category("mpi"));
    trace.thread(0, "main");
    trace.thread(0, "other");
    trace.add(0, 0, 1'000, outer, ELBOW_TRACE_BEGIN, 0, 42);
    trace.add(0, 0, 1'001, inner, ELBOW_TRACE_COUNTER, 3, 17);
    trace.add(0, 0, 1'002, inner, ELBOW_TRACE_REGION, 1);
    for (std::uint64_t i = 0; i < 10; ++i) {
      trace.send(0, 0, 2'000 + 1'000 * i, inner, 0, i);
      trace.receive(0, 1, 2'500 + 1'000 * i, inner, 0, i);
    }
    trace.add(0, 0, 12'000, inner, ELBOW_TRACE_BEGIN);
    trace.add(0, 0, 12'001, inner, ELBOW_TRACE_END);
    trace.add(0, 0, 13'000, outer, ELBOW_TRACE_END, 0, 42);
    trace.write();
  }
  void read(std::int64_t from, std::int64_t until) {
    const auto opened = open_trace(folder.file("trace"));
    Merged merged(*opened, 0);
    Part part(got, from, until);
    merge(*opened, &part, merged);
    CHECK(got.ended);
    CHECK(merged.events == 26);  // the whole trace is checked
  }
  std::vector<MergedEvent> clipped() const {
    std::vector<MergedEvent> result;
    for (const MergedEvent& event : got.events) {
      if ((event.flags & kClipped) != 0) {
        result.push_back(event);
      }
    }
    return result;
  }
};

}  // namespace

TEST_CASE("A part inside a long call shows that call from end to end, and what held when it began") {
  Long trace;
  trace.read(3'900, 4'100);
  const auto clipped = trace.clipped();
  REQUIRE(clipped.size() == 4);
  CHECK(clipped[0].kind == ELBOW_TRACE_REGION);
  CHECK(clipped[1].kind == ELBOW_TRACE_COUNTER);
  CHECK(clipped[1].first == 17);
  CHECK(clipped[2].kind == ELBOW_TRACE_BEGIN);
  CHECK(clipped[2].time == 3'900);
  CHECK(clipped[2].first == 42);
  CHECK(clipped[3].kind == ELBOW_TRACE_END);
  CHECK(clipped[3].time == 4'100);
  CHECK(clipped[3].first == 42);
}

TEST_CASE("A part has its own events in order, and messages with both ends inside") {
  Long trace;
  trace.read(3'000, 5'000);
  CHECK(trace.got.messages.size() == 2);  // at 3000 and 4000; that at 5000 arrives later
  std::int64_t last = 0;
  for (const MergedEvent& event : trace.got.events) {
    CHECK(event.time >= 3'000);
    CHECK(event.time <= 5'000);
    CHECK(event.time >= last);
    last = event.time;
  }
  CHECK(trace.got.events.size() - trace.clipped().size() == 5);
}

TEST_CASE("An interval that ends inside the part is cut at its beginning only") {
  Long trace;
  trace.read(11'500, 12'500);  // the trace begins at 0
  std::vector<std::uint8_t> kinds;
  for (const MergedEvent& event : trace.got.events) {
    if (event.kind == ELBOW_TRACE_BEGIN || event.kind == ELBOW_TRACE_END) {
      kinds.push_back(event.kind);
    }
  }
  CHECK(kinds == std::vector<std::uint8_t>{ELBOW_TRACE_BEGIN, ELBOW_TRACE_END});
  CHECK((trace.got.events.back().flags & kClipped) == 0);
}

TEST_CASE("A part that reaches beyond the trace ends with it") {
  Long trace;
  trace.read(11'500, 1'000'000);
  CHECK(trace.got.events.back().time == 12'000);
}

TEST_CASE("A loss is cut at the bounds of the part") {
  MergedJob job = test_job();
  job.duration = 1000;
  Collected got;
  Part part(got, 100, 200);
  part.begin(job);
  part.gap({0, 50, 150, 3});
  part.gap({1, 300, 400, 3});
  part.end();
  REQUIRE(got.gaps.size() == 1);
  CHECK(got.gaps[0].begin == 100);
  CHECK(got.gaps[0].end == 150);
}
