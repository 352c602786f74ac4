// Reads one thread's ring file, as it was saved or as a killed process left it; takes nothing in it on trust.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/ring_file.hpp"

namespace elbowroom::trace {

struct Text {
  std::uint64_t key;
  std::uint16_t type;
  std::string_view text;  // in the bytes that were read
};

// What a ring file holds. Events are in the order they were recorded; those of one thread never go back in time but where
// `damage` says so.
struct RingContents {
  RingHeader header{};
  std::vector<elbow_trace_slot> events;
  std::vector<Text> texts;
  std::uint64_t recorded = 0;
  std::uint64_t lost = 0;
  std::uint64_t unfinished = 0;  // taken by the thread, but not written when it was killed
  bool ended = false;            // stopped in order
  std::string damage;            // what is wrong and where; empty when nothing is. What precedes it was read.
};

// False, and `damage` alone is filled, when the bytes are no ring file of a version that this release reads. The texts
// refer to `bytes`.
bool read_ring(std::span<const std::byte> bytes, RingContents& contents);

}  // namespace elbowroom::trace
