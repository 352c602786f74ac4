// The file that one thread's events are in, while they are recorded (mapped, in memory) and afterwards (shortened).
//
// A header, slots of events, and records without a time behind them. All numbers are those of the machine that wrote it;
// `magic` is no magic on one of another byte order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "elbowroom/trace.h"

namespace elbowroom::trace {

constexpr char kMagic[8] = {'e', 'l', 'b', 'o', 'w', 't', 'r', 1};
constexpr std::size_t kHeaderBytes = 4096;
constexpr std::size_t kNameBytes = 64;

struct RingHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint32_t slot_bytes;
  std::uint32_t policy;
  std::uint64_t capacity;  // events that the ring holds, a power of two
  std::uint64_t stored;    // slots in this file: the capacity, or those used after it was shortened
  std::uint64_t text_capacity;
  std::uint64_t text_stored;  // bytes of records in this file
  std::uint64_t job;
  std::int32_t rank;
  std::int32_t ranks;
  std::int32_t thread;  // in order of their making
  std::int32_t tid;     // the system's number
  std::int64_t pid;
  char name[kNameBytes];
  char host[kNameBytes];
  // The clock (core/observe/host_clock.hpp): what the counter read at a moment of CLOCK_MONOTONIC_RAW, and its rate.
  std::uint64_t counter;
  std::uint64_t start_ticks;
  std::int64_t start_ns;
  std::uint64_t scale;
  std::uint64_t ended;       // 1 when the trace was stopped in order
  std::uint64_t text_bytes;  // used
  std::uint64_t texts;       // kept
  std::uint64_t texts_lost;
  // Its pointer is the recording process's own.
  alignas(64) elbow_trace_ring ring;
};
static_assert(sizeof(RingHeader) <= kHeaderBytes);
static_assert(sizeof(elbow_trace_slot) == 32);

// In front of each record's text; both together are padded to 8 bytes.
struct TextHeader {
  std::uint64_t key;
  std::uint16_t type;
  std::uint16_t reserved;
  std::uint32_t length;
};
static_assert(sizeof(TextHeader) == 16);

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace elbowroom::trace
