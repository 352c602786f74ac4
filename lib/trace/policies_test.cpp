// Rings that the library's own thread looks after, drained to a file or growing, and rings that their own thread flushes.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "elbowroom/trace.h"
#include "trace/test_trace.hpp"

using namespace elbowroom::trace;
using namespace elbowroom::trace::tests;

namespace {

constexpr std::uint64_t kMany = 200'000;

// Numbered events, with a pause after each hundred: that is as fast as these small rings are emptied.
void record_slowly(const elbow_trace_type* type, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    elbow_trace_event(type, 0, i, 0);
    if (i % 100 == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

void record_quickly(const elbow_trace_type* type, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    elbow_trace_event(type, 0, i, 0);
  }
}

// Events and marks together give every number once, in order: returns how many numbers there are.
std::uint64_t counted_through(const RingContents& contents) {
  std::uint64_t next = 0;
  for (const elbow_trace_slot& slot : contents.events) {
    if (slot.kind == ELBOW_TRACE_LOST) {
      next += slot.first;
    } else {
      CHECK(slot.first == next);
      ++next;
    }
  }
  return next;
}

}  // namespace

TEST_CASE("A ring that is drained keeps more events than it holds") {
  Traced traced;
  traced.settings.policy = ELBOW_TRACE_DRAIN;
  traced.settings.bytes = 4096 * 32;
  CHECK(traced.run([] {
    record_slowly(type_of("a", "i"), 30'000);
    const elbow_trace_summary summary = stopped();
    MUST(summary.recorded >= 30'000 && summary.fullest > 0 && summary.threads >= 1);
  }) == 0);
  const RingContents contents = traced.ring(0);
  CHECK(contents.damage.empty());
  CHECK(contents.ended);
  CHECK(kept(contents).size() > 4096);
  CHECK(counted_through(contents) == 30'000);
}

TEST_CASE("What a thread records faster than its ring is drained is counted, and marked where it is missing") {
  Traced traced;
  traced.settings.policy = ELBOW_TRACE_DRAIN;
  traced.settings.bytes = 64 * 32;
  CHECK(traced.run([] {
    const auto* type = type_of("a", "i");
    for (int burst = 0; burst < 20; ++burst) {
      elbow_trace_event(type, 1, 0, 0);
      record_quickly(type, 10'000);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    MUST(stopped().lost > 0);
  }) == 0);
  const RingContents contents = traced.ring(0);
  CHECK(contents.damage.empty());
  CHECK(contents.recorded == 20 * 10'001);
  const std::uint64_t known = kept(contents).size() + marked(contents);
  CHECK(known == contents.recorded);
  CHECK(kept(contents).size() > 64);  // it was drained while events were recorded, however often
  for (std::size_t i = 1; i < contents.events.size(); ++i) {
    CHECK(contents.events[i].time >= contents.events[i - 1].time);
  }
}

TEST_CASE("Of a process that is killed while it is drained, file and ring together hold all events") {
  Traced traced;
  traced.settings.policy = ELBOW_TRACE_DRAIN;
  traced.settings.bytes = 1024 * 32;
  const int status = traced.run([] {
    record_slowly(type_of("a", "i"), 10'100);
    kill(getpid(), SIGKILL);
  });
  CHECK(WIFSIGNALED(status));
  const RingContents file = traced.ring(0);
  CHECK_FALSE(file.ended);
  CHECK(file.damage.empty());
  const auto memory = traced.lines("trace").at(0).at("memory").get<std::string>();
  auto bytes = bytes_of(memory + "/thread-00000.ring");
  auto& header = *reinterpret_cast<RingHeader*>(bytes.data());
  CHECK(header.drained == file.header.drained);
  const RingContents rest = contents_of(bytes);
  CHECK(rest.damage.empty());
  CHECK(file.recorded + rest.recorded == 10'100);
  CHECK(kept(file).size() + rest.events.size() + file.lost + rest.lost == 10'100);
  if (file.lost + rest.lost == 0) {
    CHECK(counted_through(file) == file.header.drained);
    CHECK(rest.events.front().first == file.header.drained);
    CHECK(rest.events.back().first == 10'099);
  }
}

TEST_CASE("A ring that its own thread flushes keeps all events, and says when it was flushed") {
  Traced traced;
  traced.settings.policy = ELBOW_TRACE_FLUSH;
  traced.settings.bytes = 1024 * 32;
  CHECK(traced.run([] {
    record_quickly(type_of("a", "i"), kMany);
    const elbow_trace_summary summary = stopped();
    MUST(summary.lost == 0 && summary.threads == 1 && summary.advised >= kMany * sizeof(elbow_trace_slot));
  }) == 0);
  const RingContents contents = traced.ring(0);
  // The event that finds the ring full is stamped after the flush, as one that a signal handler interrupts.
  CHECK(contents.damage.find("the clock goes back at") == 0);
  CHECK(contents.lost == 0);
  std::uint64_t next = 0;
  std::uint64_t flushes = 0;
  for (const elbow_trace_slot& slot : contents.events) {
    if (slot.kind == ELBOW_TRACE_EVENT) {
      CHECK(slot.first == next++);
    }
    flushes += slot.kind == ELBOW_TRACE_BEGIN ? 1 : 0;
  }
  CHECK(next == kMany);
  // Each time the ring held 1024 events, of which two are those of the flush before.
  CHECK(flushes == (kMany - 1024) / 1022 + 1);
}

TEST_CASE("A ring is flushed for the first time after the number of events that was given") {
  Traced traced;
  traced.settings.policy = ELBOW_TRACE_FLUSH;
  traced.settings.bytes = 4096 * 32;
  traced.settings.flush_at = 100;
  CHECK(traced.run([] {
    record_quickly(type_of("a", "i"), 1000);
    stopped();
  }) == 0);
  std::vector<std::uint64_t> before;
  std::uint64_t events = 0;
  for (const elbow_trace_slot& slot : traced.ring(0).events) {
    if (slot.kind == ELBOW_TRACE_BEGIN) {
      before.push_back(events);
    }
    ++events;
  }
  CHECK(before == std::vector<std::uint64_t>{101});  // event 100 has its number, and is written afterwards
}

TEST_CASE("Of a process that is killed, a flushed file and the ring together hold all events") {
  Traced traced;
  traced.settings.policy = ELBOW_TRACE_FLUSH;
  traced.settings.bytes = 1024 * 32;
  const int status = traced.run([] {
    record_quickly(type_of("a", "i"), 10'100);
    kill(getpid(), SIGKILL);
  });
  CHECK(WIFSIGNALED(status));
  const RingContents file = traced.ring(0);
  const auto memory = traced.lines("trace").at(0).at("memory").get<std::string>();
  const auto bytes = bytes_of(memory + "/thread-00000.ring");
  const RingContents rest = contents_of(bytes);
  CHECK(file.lost + rest.lost == 0);
  CHECK(rest.events.back().first == 10'099);
}

TEST_CASE("A ring that grows keeps all events of a thread that does not outrun it, and says when it grew") {
  Traced traced;
  traced.settings.policy = ELBOW_TRACE_GROW;
  traced.settings.bytes = 1U << 16;
  CHECK(traced.run([] {
    record_slowly(type_of("a", "i"), 20'000);
    elbow_trace_text(type_of("b"), 3, "three");
    const elbow_trace_summary summary = stopped();
    MUST(summary.capacity >= 20'000 || summary.lost > 0);
  }) == 0);
  const RingContents contents = traced.ring(0);
  CHECK(contents.damage.empty());
  CHECK(counted_through(contents) == 20'000);
  CHECK(kept(contents).size() > 2048);
  REQUIRE(contents.texts.size() == 1);
  CHECK(contents.texts[0].text == "three");
  const auto types = traced.lines("type");
  const RingContents helper = traced.ring(1);
  REQUIRE(helper.events.size() >= 2);
  CHECK(types.at(helper.events[0].type).at("name") == "flush");
  CHECK(helper.events[0].kind == ELBOW_TRACE_BEGIN);
  CHECK(helper.events[1].kind == ELBOW_TRACE_END);
}

TEST_CASE("A ring never grows inside the region of interest, and has the room that was asked for when it begins") {
  Traced traced;
  traced.settings.policy = ELBOW_TRACE_GROW;
  traced.settings.bytes = 4096 * 32;
  CHECK(traced.run([] {
    const auto* type = type_of("a", "i");
    record_slowly(type, 3000);
    elbow_trace_region(1);
    record_quickly(type, 4000);  // fits beside those before
    record_quickly(type, kMany);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    elbow_trace_event(type, 1, 0, 0);
    elbow_trace_region(0);
    for (int wait_ms = 10; wait_ms <= 160; wait_ms *= 2) {  // until the ring has grown, on a busy machine, too
      std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
      elbow_trace_event(type, 2, 0, 0);
    }
    stopped();
  }) == 0);
  const RingContents contents = traced.ring(0);
  CHECK(contents.damage.empty());
  std::uint64_t inside = 0;
  bool later = false;
  bool within = false;
  for (const elbow_trace_slot& slot : kept(contents)) {
    within = slot.kind == ELBOW_TRACE_REGION ? slot.small == 1 : within;
    inside += within && slot.kind == ELBOW_TRACE_EVENT ? 1 : 0;
    CHECK_FALSE((within && slot.small == 1 && slot.kind == ELBOW_TRACE_EVENT));
    later = later || (slot.kind == ELBOW_TRACE_EVENT && slot.small == 2);
  }
  CHECK(inside >= 4000);
  CHECK(inside < kMany);
  CHECK(later);
  CHECK(kept(contents).size() + marked(contents) == contents.recorded);
}

TEST_CASE("Of a process that is killed while its rings grow, the ring in memory is read, texts in front") {
  Traced traced;
  traced.settings.policy = ELBOW_TRACE_GROW;
  traced.settings.bytes = 1U << 16;
  const int status = traced.run([] {
    const auto* type = type_of("a", "i");
    elbow_trace_text(type, 7, "seven");
    record_slowly(type, 10'000);
    kill(getpid(), SIGKILL);
  });
  CHECK(WIFSIGNALED(status));
  const auto memory = traced.lines("trace").at(0).at("memory").get<std::string>();
  const auto bytes = bytes_of(memory + "/thread-00000.ring");
  const RingContents contents = contents_of(bytes);
  CHECK(contents.damage.empty());
  CHECK(contents.recorded == 10'000);
  CHECK(contents.events.size() + contents.unfinished + contents.lost == 10'000);
  CHECK(contents.events.size() > 2048);
  REQUIRE(contents.texts.size() == 1);
  CHECK(contents.texts[0].text == "seven");
}
