#include "trace/reader.hpp"

#include <doctest/doctest.h>

#include "elbowroom/trace.h"
#include "trace/test_trace.hpp"

using namespace elbowroom::trace;
using namespace elbowroom::trace::tests;

TEST_CASE("Damaged and truncated rings are read up to the damage, which is named") {
  Traced traced;
  CHECK(traced.run([] {
    const auto* type = type_of("a", "i");
    for (std::uint64_t i = 0; i < 100; ++i) {
      elbow_trace_event(type, 0, i, 0);
    }
    elbow_trace_text(type, 1, "text");
  }) == 0);
  const auto bytes = traced.ring_bytes();
  RingContents contents = contents_of(bytes);
  CHECK(contents.damage.empty());
  const std::span<const std::byte> whole(bytes);
  REQUIRE(read_ring(whole.first(kHeaderBytes + 50 * 32 + 7), contents));
  CHECK(contents.events.size() == 50);
  CHECK(contents.damage.find("after 50 of 100 events") != std::string::npos);
  CHECK_FALSE(read_ring(whole.first(100), contents));
  CHECK(contents.damage.find("inside its header") != std::string::npos);
  auto changed = bytes;
  changed[kHeaderBytes + 20 * 32 + 10] = std::byte{200};  // its kind
  REQUIRE(read_ring(changed, contents));
  CHECK(contents.events.size() == 20);
  CHECK(contents.damage.find("event 20 is of kind 200") != std::string::npos);
  changed = bytes;
  changed[8] = std::byte{9};  // version
  CHECK_FALSE(read_ring(changed, contents));
  CHECK(contents.damage.find("has version 9") != std::string::npos);
  // Any byte may be anything: no crash, no hang.
  std::uint64_t state = 1;
  for (int trial = 0; trial < 3000; ++trial) {
    changed = bytes;
    for (int i = 0; i < 4; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      const std::size_t place = (state >> 33) % (trial % 2 == 0 ? sizeof(RingHeader) : changed.size());
      changed[place] = static_cast<std::byte>(state >> 20);
    }
    read_ring(changed, contents);
    CHECK(contents.events.size() <= bytes.size() / 32);
  }
}
