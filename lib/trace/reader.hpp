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

// Slots in a row.
struct RingRun {
  std::uint64_t place;  // of the first one in the file, bytes
  std::uint64_t count;
  std::uint64_t number;  // of the first one's event
};

// Where a ring file's events and records are.
struct RingLayout {
  RingHeader header{};
  std::vector<RingRun> runs;  // oldest event first
  std::uint64_t recorded = 0;
  std::uint64_t kept = 0;  // of the recorded ones, as the header says
  std::uint64_t text_at = 0;
  std::uint64_t text_end = 0;
  std::string damage;  // as that of RingContents
};

// From the file's first bytes (kHeaderBytes of them, or all there are) and its size. False, and `damage` alone is filled,
// when it is no ring file of a version that this release reads.
bool read_layout(std::span<const std::byte> front, std::uint64_t file_bytes, RingLayout& layout);

// Whether a slot of a run holds the event of that number, whole.
bool is_whole(const RingHeader& header, const elbow_trace_slot& slot, std::uint64_t number);

// The records among `bytes`, which are those of the file between text_at and text_end; what is wrong is added to `damage`.
std::vector<Text> read_texts(std::span<const std::byte> bytes, std::string& damage);

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
