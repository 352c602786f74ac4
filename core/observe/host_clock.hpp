// The clock of this host as numbers, so that processes can share one: each calibrating for itself, they would drift apart
// by a microsecond in a second.
#pragma once

#include <cstdint>

namespace elbowroom {

// The processor's counter read `start_ticks` at `start_ns` of CLOCK_MONOTONIC_RAW, and goes on by `scale` / 2^32 ns a tick.
// Without a counter that can be trusted, CLOCK_MONOTONIC_RAW itself.
struct HostClock {
  bool counter = false;
  std::uint64_t start_ticks = 0;
  std::int64_t start_ns = 0;
  std::uint64_t scale = 0;

  std::int64_t now() const;                    // ns
  std::int64_t at(std::uint64_t ticks) const;  // ns when the counter reads that, before the start, too
};

const HostClock& host_clock();  // calibrated on first use (40 ms)

}  // namespace elbowroom
