// What a message costs the rank that sends or receives it. A tool inlines it.
#pragma once

#include "guard/board.hpp"

namespace elbowroom::guard {

// A single thread that writes needs no locked instruction.
inline void add(std::atomic<std::uint64_t>& number, std::uint64_t more, bool threads) {
  if (threads) {
    number.fetch_add(more, std::memory_order_relaxed);
  } else {
    number.store(number.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
}

inline void begin(Place& place, int direction, std::uint64_t bytes, bool threads) {
  add(place.flight[direction], kMessageInFlight + bytes, threads);
}

inline void end(Place& place, int direction, std::uint64_t bytes, bool threads) {
  add(place.flight[direction], std::uint64_t{0} - kMessageInFlight - bytes, threads);
  add(place.moved[direction], bytes, threads);
}

inline void step(Place& place, std::uint64_t now) {
  place.step_begin.store(now, std::memory_order_relaxed);
  place.steps.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace elbowroom::guard
