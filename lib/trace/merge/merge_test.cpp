#include "trace/merge/merge.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>

#include "trace/merge/report.hpp"
#include "trace/merge/synthetic_trace.hpp"
#include "trace/merge/test_collected.hpp"
#include "trace/outputs/test_job.hpp"

using namespace elbowroom::trace;

namespace {

// Two ranks, of which the second's clock is a second behind and 100 ppm fast, compared at 0 and at 1 ms of the reference.
struct TwoClocks {
  TestFolder folder;
  SyntheticTrace trace{folder.file("trace"), 2};
  std::uint16_t type = trace.type("step", trace.category("work"), {"", "i", ""});

  static std::uint64_t local(std::int64_t reference) {
    return static_cast<std::uint64_t>(2'000'000'000 + reference + reference / 10'000);
  }
  TwoClocks() {
    for (const std::int64_t reference : {1'000'000, 11'000'000}) {
      const auto other = static_cast<std::int64_t>(local(reference));
      trace.sync(0, reference, 0, 0, 0);
      trace.sync(1, other, reference - other, reference - other - 40, reference - other + 60);
    }
    trace.thread(0, "main");
    trace.thread(1, "main");
  }
  ReadTrace read() {
    trace.write();
    return ReadTrace(folder.file("trace"));
  }
};

}  // namespace

TEST_CASE("Events of all threads come in the order of the reference's time") {
  TwoClocks two;
  for (std::int64_t i = 0; i < 20'000; ++i) {
    const std::int64_t time = 1'000'000 + i * 500;
    two.trace.add(static_cast<int>(i % 2), 0, i % 2 == 0 ? static_cast<std::uint64_t>(time) : TwoClocks::local(time),
                  two.type, ELBOW_TRACE_EVENT, 0, static_cast<std::uint64_t>(i));
  }
  const ReadTrace read = two.read();
  REQUIRE(read.got.events.size() == 20'000);
  for (std::size_t i = 0; i < 20'000; ++i) {
    CHECK(read.got.events[i].first == i);
    // Whole ns on both clocks, and a line in between.
    CHECK(std::abs(read.got.events[i].time - static_cast<std::int64_t>(i) * 500) <= 2);
    CHECK(read.got.events[i].flags == 0);
    CHECK(read.got.events[i].error >= (i % 2 == 0 ? 0 : 60));
    CHECK(read.got.events[i].error < 100);
  }
  CHECK(read.got.job.start == 1'000'000);
  CHECK(read.merged.monotone);
  CHECK(read.got.ended);
  CHECK(doubts(*read.trace, read.merged).empty());
}

TEST_CASE("Times outside the sync points say so, and how wrong they may be") {
  TwoClocks two;
  two.trace.add(1, 0, TwoClocks::local(0), two.type, ELBOW_TRACE_EVENT);
  two.trace.add(1, 0, TwoClocks::local(1'500'000), two.type, ELBOW_TRACE_EVENT);
  two.trace.add(1, 0, TwoClocks::local(21'000'000), two.type, ELBOW_TRACE_EVENT);
  const ReadTrace read = two.read();
  REQUIRE(read.got.events.size() == 3);
  CHECK(read.got.events[0].flags == kExtrapolated);
  CHECK(read.got.events[1].flags == 0);
  CHECK(read.got.events[2].flags == kExtrapolated);
  // 10 ms at 100 ppm: the time is wrong by 1 us, and the error is no less.
  CHECK(std::abs(read.got.events[2].time + read.got.job.start - 21'000'000) <= read.got.events[2].error);
  CHECK(read.got.events[2].error > 1000);
}

TEST_CASE("Counter stamps become ns by the clock's calibration") {
  TestFolder folder;
  SyntheticTrace trace(folder.file("trace"));
  trace.clock(0, {true, 1000, 5'000'000, (1ULL << 32) / 2});  // half a ns a tick
  const auto type = trace.type("a", trace.category("c"));
  trace.thread(0, "main");
  trace.add(0, 0, 1000, type, ELBOW_TRACE_EVENT);
  trace.add(0, 0, 4000, type, ELBOW_TRACE_EVENT);
  trace.write();
  const ReadTrace read(folder.file("trace"));
  CHECK(read.got.job.start == 5'000'000);
  CHECK(read.got.events.at(1).time == 1500);
  CHECK(read.got.events.at(1).stamp == 4000);
  CHECK(read.got.events.at(1).error == 0);  // one process: its clock is the reference
}

TEST_CASE("A rank without a sync point is flagged, and nothing is trusted; with one it is warned of") {
  TestFolder folder;
  SyntheticTrace trace(folder.file("trace"), 3);
  const auto type = trace.type("a", trace.category("c"));
  for (int rank = 0; rank < 3; ++rank) {
    trace.thread(rank, "main");
    trace.add(rank, 0, 1'000'000U * static_cast<unsigned>(rank + 1), type, ELBOW_TRACE_EVENT);
  }
  trace.sync(0, 0, 0, 0, 0);
  trace.sync(0, 5'000'000, 0, 0, 0);
  trace.sync(1, 0, 10, 0, 20);
  trace.write();
  const ReadTrace read(folder.file("trace"));
  REQUIRE(read.got.events.size() == 3);
  for (const MergedEvent& event : read.got.events) {
    const bool last = event.thread == 2;
    CHECK(((event.flags & kUnsynced) != 0) == last);
    CHECK((event.error < 0) == last);
    CHECK((event.time == 0) == (last || event.thread == 0));  // another host's: moved to the beginning
  }
  CHECK(read.warned("rank 1 has only one sync point"));
  CHECK(read.warned("rank 2 has no sync point"));
  CHECK(read.warned("rank 2's first event was moved"));
  CHECK_FALSE(doubts(*read.trace, read.merged).empty());
  const auto report = check_report(*read.trace, read.merged);
  CHECK(report["worst_error_ns"].is_null());
  CHECK(sync_report(*read.trace)["ranks"][2]["flags"][0] == "unsynced");
  CHECK(sync_report(*read.trace)["ranks"][1]["flags"][0] == "single");
}

TEST_CASE("An event that a signal handler interrupted takes its place among the handler's") {
  TestFolder folder;
  SyntheticTrace trace(folder.file("trace"));
  const auto type = trace.type("a", trace.category("c"));
  trace.thread(0, "main");
  // Number 1 was taken, then a handler recorded 2 and 3, in which another recorded 4, before 1 and 2 were stamped.
  for (const std::uint64_t stamp : {100U, 160U, 130U, 150U, 140U, 170U}) {
    trace.add(0, 0, stamp, type, ELBOW_TRACE_EVENT, 0, stamp);
  }
  trace.write();
  const ReadTrace read(folder.file("trace"));
  std::vector<std::uint64_t> stamps;
  for (const MergedEvent& event : read.got.events) {
    CHECK(event.stamp == event.first);
    CHECK(event.flags == 0);
    stamps.push_back(event.stamp);
  }
  CHECK(stamps == std::vector<std::uint64_t>{100, 130, 140, 150, 160, 170});
  CHECK(read.trace->damage.empty());
}

TEST_CASE("A clock that goes back is damage; its events keep their order and are flagged") {
  TestFolder folder;
  SyntheticTrace trace(folder.file("trace"));
  const auto type = trace.type("a", trace.category("c"));
  trace.thread(0, "main");
  for (std::uint64_t i = 0; i < 300; ++i) {
    trace.add(0, 0, i < 200 ? 1000 + i * 10 : 2000 + i * 10, type, ELBOW_TRACE_EVENT, 0, i);
  }
  for (std::uint64_t i = 300; i < 400; ++i) {
    trace.add(0, 0, 1500 + i * 10, type, ELBOW_TRACE_EVENT, 0, i);  // 3.5 us back
  }
  trace.write();
  const ReadTrace read(folder.file("trace"));
  REQUIRE(read.got.events.size() == 400);
  std::size_t moved = 0;
  for (std::size_t i = 0; i < 400; ++i) {
    CHECK(read.got.events[i].first == i);
    moved += (read.got.events[i].flags & kMoved) != 0 ? 1 : 0;
    CHECK((read.got.events[i].error < 0) == ((read.got.events[i].flags & kMoved) != 0));
  }
  CHECK(moved == 49);  // until it reads again what it read before
  CHECK(read.merged.monotone);
  CHECK(read.trace->damage.at(0).file == "rank-00000.thread-00000.ring");
  CHECK(read.trace->damage.at(0).what == "the clock goes back or jumps at 49 of the events, first at event 300");
  CHECK_FALSE(doubts(*read.trace, read.merged).empty());
}

TEST_CASE("One stamp that is far off moves its own event alone") {
  TestFolder folder;
  SyntheticTrace trace(folder.file("trace"));
  const auto type = trace.type("a", trace.category("c"));
  trace.thread(0, "main");
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    trace.add(0, 0, i == 100 ? ~0ULL : i == 200 ? 1 : i == 300 ? 10'000'000 : 1000 + i, type, ELBOW_TRACE_EVENT, 0, i);
  }
  trace.write();
  const ReadTrace read(folder.file("trace"));
  REQUIRE(read.got.events.size() == 20'000);
  for (std::size_t i = 0; i < 20'000; ++i) {
    const bool off = i == 100 || i == 200 || i == 300;
    CHECK(read.got.events[i].time == static_cast<std::int64_t>(off ? i - 1 : i));
    CHECK(read.got.events[i].flags == (off ? kMoved : 0));
  }
}

TEST_CASE("What a full ring, a flight recorder and one that drains lost are gaps at their places") {
  TestFolder folder;
  SyntheticTrace trace(folder.file("trace"));
  const auto type = trace.type("a", trace.category("c"));
  trace.thread(0, "full");
  trace.thread(0, "flight recorder", ELBOW_TRACE_OVERWRITE);
  trace.thread(0, "long");
  for (std::uint64_t i = 0; i < 64; ++i) {
    trace.add(0, 0, 1000 + i, type, ELBOW_TRACE_EVENT);
    trace.add(0, 1, 2000 + i, type, ELBOW_TRACE_EVENT);
  }
  trace.add(0, 2, 1000, type, ELBOW_TRACE_EVENT);
  trace.add(0, 2, 3000, type, ELBOW_TRACE_EVENT);
  trace.lose(0, 0, 7);
  trace.lose(0, 1, 128);
  trace.write();
  const ReadTrace read(folder.file("trace"));
  REQUIRE(read.got.gaps.size() == 2);
  CHECK(read.got.gaps[0].thread == 1);
  CHECK(read.got.gaps[0].lost == 128);
  CHECK(read.got.gaps[0].begin == 0);
  CHECK(read.got.gaps[0].end == 1000);
  CHECK(read.got.gaps[1].thread == 0);
  CHECK(read.got.gaps[1].lost == 7);
  CHECK(read.got.gaps[1].begin == 63);
  CHECK(read.got.gaps[1].end == 2000);
  const auto report = check_report(*read.trace, read.merged);
  CHECK(report["events"] == 130 + 135);
  CHECK(report["kept"] == 130);
  CHECK(report["lost"] == 135);
}

TEST_CASE("Types of different ranks are one where name, category and fields agree") {
  TestFolder folder;
  {
    SyntheticTrace one(folder.file("trace"), 2);
    const auto b = one.type("b", one.category("work"));
    one.thread(0, "main");
    one.add(0, 0, 10, b, ELBOW_TRACE_EVENT);
    one.leave_out(1);
    one.write();
  }
  SyntheticTrace other(folder.file("trace"), 2);
  const int work = other.category("work");
  const auto a = other.type("a", work);
  const auto b = other.type("b", work);
  const auto fields = other.type("b", work, {"x", "", ""});
  other.leave_out(0);
  other.thread(1, "main");
  for (const auto type : {a, b, fields}) {
    other.add(1, 0, 20, type, ELBOW_TRACE_EVENT);
  }
  other.write();
  const ReadTrace read(folder.file("trace"));
  REQUIRE(read.got.events.size() == 4);
  std::vector<std::string> names;
  for (const MergedEvent& event : read.got.events) {
    names.push_back(read.got.job.types[event.type].name);
  }
  CHECK(std::count(names.begin(), names.end(), "b") == 3);
  CHECK(read.got.job.categories.size() == 2);  // the recorder's own, and work
  CHECK(read.got.job.types.size() == 5);
}

TEST_CASE("Events are counted by type and time, thread, rank and category; times from begin to end are added") {
  TestFolder folder;
  SyntheticTrace trace(folder.file("trace"));
  const auto outer = trace.type("outer", trace.category("work"));
  const auto inner = trace.type("inner", trace.category("mpi"));
  trace.thread(0, "main");
  for (std::uint64_t i = 0; i < 10; ++i) {
    trace.add(0, 0, 1000 + i * 100, outer, ELBOW_TRACE_BEGIN);
    trace.add(0, 0, 1010 + i * 100, inner, ELBOW_TRACE_BEGIN);
    trace.add(0, 0, 1020 + i * 100, inner, ELBOW_TRACE_END);
    trace.add(0, 0, 1090 + i * 100, outer, ELBOW_TRACE_END);
  }
  trace.write();
  const ReadTrace read(folder.file("trace"), 2);
  const auto report = stat_report(*read.trace, read.merged);
  CHECK(report["duration_ns"] == 990);
  CHECK(report["bin_ns"] == 496);
  const auto& type = report["types"][2];
  CHECK(type["name"] == "outer");
  CHECK(type["events"] == 20);
  CHECK(type["begins"] == 10);
  CHECK(type["ends"] == 10);
  CHECK(type["total_ns"] == 900);
  CHECK(type["per_bin"] == nlohmann::ordered_json({10, 10}));
  CHECK(type["per_second"] == type["per_bin"]);
  CHECK(type["whole"] == 10);
  CHECK(type["longest_ns"] == 90);
  CHECK(report["types"][3]["total_ns"] == 100);
  CHECK(report["threads"][0]["kept"] == 40);
  CHECK(report["ranks"][0]["overhead_ns"] == 400.0);  // 10 ns each
  CHECK(report["ranks"][0]["by_category"][2]["events"] == 20);
  CHECK(report["ranks"][0]["by_category"][2]["overhead_ns"] == 200.0);
}

TEST_CASE("Bytes of calls and of messages are added by type, each call once") {
  TestFolder folder;
  SyntheticTrace trace(folder.file("trace"));
  const int mpi = trace.category("mpi");
  const auto call = trace.type("MPI_Send", mpi, {"peer", "bytes", ""});
  const auto message = trace.type("message", mpi);
  trace.thread(0, "main");
  for (std::uint64_t i = 1; i <= 4; ++i) {
    trace.add(0, 0, 100 * i, call, ELBOW_TRACE_BEGIN, 0, 1000 * i);
    trace.send(0, 0, 100 * i + 1, message, 0, 10 * i, 0, 0, static_cast<std::uint32_t>(i));
    trace.add(0, 0, 100 * i + i, call, ELBOW_TRACE_END, 0, 1000 * i);
  }
  trace.write();
  const ReadTrace read(folder.file("trace"), 1);
  const auto& types = read.merged.statistics.types();
  REQUIRE(types.size() == 4);  // and the recorder's own
  CHECK(types[2].bytes == 10'000);
  CHECK(types[2].longest_ns == 4);
  CHECK(types[3].bytes == 100);
}

TEST_CASE("An event of a type that appears between opening and merging is left out, and said") {
  TestFolder folder;
  SyntheticTrace trace(folder.file("trace"));
  const auto type = trace.type("a", trace.category("c"));
  trace.thread(0, "main");
  for (std::uint64_t i = 0; i < 10; ++i) {
    trace.add(0, 0, 100 + i, type, ELBOW_TRACE_EVENT);
  }
  trace.write();
  const auto opened = open_trace(folder.file("trace"));
  for (const std::uint16_t fresh : {std::uint16_t{40}, std::uint16_t{60'000}}) {
    std::fstream file(trace.ring(0, 0), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(kHeaderBytes + sizeof(elbow_trace_slot) * (fresh == 40 ? 3 : 9) +
                                           offsetof(elbow_trace_slot, type)));
    file.write(reinterpret_cast<const char*>(&fresh), sizeof fresh);
  }
  Merged merged(*opened, 2);
  Collected got;
  merge(*opened, &got, merged);
  CHECK(got.events.size() == 8);
  CHECK(merged.appeared == 2);
  CHECK(merged.changed(*opened));
  CHECK(doubts(*opened, merged).at(0).starts_with("the files changed while they were read"));
}

TEST_CASE("A trace that lost more than a hundredth of a rank's events is not to be trusted, a flight recorder's is") {
  for (const auto& [policy, lost, trusted] : {std::tuple{+ELBOW_TRACE_STOP, 96U, false},
                                              {+ELBOW_TRACE_STOP, 0U, true},
                                              {+ELBOW_TRACE_OVERWRITE, 96U, true}}) {
    TestFolder folder;
    SyntheticTrace trace(folder.file("trace"), 2);
    const auto type = trace.type("a", trace.category("c"));
    for (int rank = 0; rank < 2; ++rank) {
      const int events = policy == ELBOW_TRACE_OVERWRITE ? 64 : 4;  // a ring of a power of two
      trace.sync(rank, 0, 0, 0, 0);
      trace.sync(rank, 1000, 0, 0, 0);
      trace.thread(rank, "main", policy);
      for (int i = 0; i < events; ++i) {
        trace.add(rank, 0, 100 + static_cast<std::uint64_t>(i), type, ELBOW_TRACE_EVENT);
      }
    }
    if (lost > 0) {
      trace.lose(1, 0, policy == ELBOW_TRACE_OVERWRITE ? 64 : lost);
    }
    trace.write();
    const ReadTrace read(folder.file("trace"));
    const auto result = doubts(*read.trace, read.merged);
    CHECK(result.empty() == trusted);
    if (!trusted) {
      CHECK(result.back() ==
            "rank 1 lost 96 % of its events (96 of 100); record again with larger buffers, fewer categories or a "
            "region of interest");
    }
  }
}
