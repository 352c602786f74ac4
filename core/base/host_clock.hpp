// The clock of this host as numbers, so that processes can share one: each calibrating for itself, they would drift apart
// by a microsecond in a second.
#pragma once

#include <cstdint>

namespace elbowroom {

// The processor's counter read `start_ticks` at `start_ns` of CLOCK_MONOTONIC_RAW, and goes on by `scale` / 2^32 ns a tick.
// Without a counter that can be trusted, CLOCK_MONOTONIC_RAW itself, or CLOCK_MONOTONIC where `steered`.
struct HostClock {
  bool counter = false;
  std::uint64_t start_ticks = 0;
  std::int64_t start_ns = 0;
  std::uint64_t scale = 0;
  bool steered = false;

  std::int64_t now() const;  // ns
  // ns when the counter reads that, before the start, too
  std::int64_t at(std::uint64_t ticks) const {
    __extension__ using Signed = __int128;
    const auto passed = static_cast<std::int64_t>(ticks - start_ticks);
    return start_ns + static_cast<std::int64_t>((static_cast<Signed>(passed) * static_cast<Signed>(scale)) >> 32);
  }
};

// The same instant on both clocks, as near as the quickest of some tries tells: known to `width` ns.
struct Anchor {
  std::uint64_t ticks = 0;
  std::int64_t ns = 0;
  std::int64_t width = 0;
};

Anchor take_anchor();

const HostClock& host_clock();  // calibrated on first use (40 ms)

}  // namespace elbowroom
