// The file that one thread's events are in, while they are recorded (mapped, in memory) and afterwards (shortened).
//
// A header, slots of events, and records without a time behind them. All numbers are those of the machine that wrote it;
// `magic` is no magic on one of another byte order. Slots begin at byte `header_bytes`.
//
// Of `ring.recorded` events, numbered from 0, slots hold
//
//   STOP       number n in slot n, up to the capacity.
//   OVERWRITE  number n in slot n modulo the capacity, the last ones.
//   GROW       number n in slot n; the capacity, then no power of two, is what the file had grown to. The file is sparse,
//              and its texts are in front (`texts_at`).
//   DRAIN      number n in slot n modulo the capacity, of the numbers from `drained` on, which are below `ring.limit` and not
//              `lost_from` to `lost_to`, the last of that excluded. Those before `drained` are in the file in the directory:
//
//   FLUSH      in files it is DRAIN; the thread itself writes what its full ring holds (`flush`).
//
//   in_order   (every file in the directory) slots in the order of events, `stored` of them, of which `marks`
//              are no events but say how many are missing there (ELBOW_TRACE_LOST, with the time of what follows): kept are
//              stored - marks, and recorded less these are lost. It grows while events are recorded (DRAIN; `ended` 0,
//              `drained` and `stored` as far as it is whole): the rest of a killed process's events is in its ring in
//              memory, from the number `drained` of this file on.
//
// A slot of a ring is whole where its time is not 0 and its `lap` is number >> ring.shift, modulo 256 (a shift of 0: no lap
// was written); else its event was lost, or was being written when the process was killed. An event that a signal handler
// interrupts is stamped after those of the handler, whose numbers are higher.
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
  // The clock (core/base/host_clock.hpp): what the counter read at a moment of CLOCK_MONOTONIC_RAW, and its rate.
  std::uint64_t counter;
  std::uint64_t start_ticks;
  std::int64_t start_ns;
  std::uint64_t scale;
  std::uint64_t ended;       // 1 when the trace was stopped in order
  std::uint64_t text_bytes;  // used
  std::uint64_t texts;       // kept
  std::uint64_t texts_lost;
  std::uint64_t in_order;  // 1: slots are in the order of events, from the first on
  std::uint64_t marks;     // slots among them that say what is missing
  std::uint64_t texts_at;  // where texts begin in the file; 0: behind the slots
  // Written by the thread alone. Its pointer is the recording process's own.
  alignas(64) elbow_trace_ring ring;
  std::uint64_t lost_from;
  std::uint64_t lost_to;
  std::uint64_t losing;  // DRAIN: 1 while all events are lost, those from the limit on
  // Written by the library's own thread.
  alignas(64) std::uint64_t drained;  // events up to this number are in the file in the directory
  std::uint64_t present;              // GROW: there is memory for events up to this number,
  std::uint64_t present_from;         // and from this one on
  std::uint64_t closed;               // 1: the trace was stopped
  // FLUSH: what the thread calls where its ring is full, else NULL. The recording process's own.
  void (*flush)();
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
