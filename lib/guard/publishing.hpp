// What a message costs the rank that sends or receives it. A tool inlines it.
#pragma once

#include "guard/board.hpp"

// A rank of this process, as elbow_guard_join gives it.
struct elbow_guard_rank {
  elbowroom::guard::Place* place;
  elbowroom::guard::Amount* amount;
  bool threads;  // whether several of them publish by the C interface
};

namespace elbowroom::guard {

// A single thread that writes needs no locked instruction. Gives what was there before.
inline std::uint64_t add(std::atomic<std::uint64_t>& number, std::uint64_t more, bool threads) {
  if (threads) {
    return number.fetch_add(more, std::memory_order_relaxed);
  }
  const std::uint64_t before = number.load(std::memory_order_relaxed);
  number.store(before + more, std::memory_order_relaxed);
  return before;
}

inline std::uint32_t units_of(std::uint64_t flight) {
  return static_cast<std::uint32_t>((flight & kBytesInFlight) / kUnit);
}

// Adds to what is in flight, and to the amount where that passes a unit. Several threads add differences, in any order: the sum
// is right. A single one reads only its own line.
inline void change(const elbow_guard_rank& rank, int direction, std::uint64_t more, bool threads) {
  std::atomic<std::uint64_t>& flight = rank.place->flight[direction];
  const std::uint64_t before = add(flight, more, threads);
  const std::uint32_t difference = units_of(before + more) - units_of(before);
  if (difference == 0) {
    return;
  }
  if (threads) {
    rank.amount->fetch_add(difference, std::memory_order_relaxed);
  } else {
    const std::uint64_t other = rank.place->flight[1 - direction].load(std::memory_order_relaxed);
    rank.amount->store(units_of(before + more) + units_of(other), std::memory_order_relaxed);
  }
}

inline void begin(const elbow_guard_rank& rank, int direction, std::uint64_t bytes, bool threads) {
  change(rank, direction, kMessageInFlight + bytes, threads);
}

inline void end(const elbow_guard_rank& rank, int direction, std::uint64_t bytes, bool threads) {
  change(rank, direction, std::uint64_t{0} - kMessageInFlight - bytes, threads);
  add(rank.place->moved[direction], bytes, threads);
}

inline void step(Place& place, std::uint64_t now) {
  place.step_begin.store(now, std::memory_order_relaxed);
  place.steps.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace elbowroom::guard
