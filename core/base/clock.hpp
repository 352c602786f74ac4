// The clock: invariant TSC where there is one, else CLOCK_MONOTONIC_RAW (docs/design/method.md, rule 6).
#pragma once

#include <cstdint>
#include <string>

namespace elbowroom {

struct ClockInfo {
  std::string source;    // "tsc" or "CLOCK_MONOTONIC_RAW"
  double resolution_ns;  // smallest step seen between two reads that differ
  double call_ns;        // median cost of one read
};

std::int64_t now_ns();          // monotonic, comparable between cores of this host
const ClockInfo& clock_info();  // measured once, on first use
double minimum_sample_ns();     // max(20 ticks, 100 calls): shorter samples are refused

// The clock's source as the host keeps it, without this process' own scale and start: readings of processes of one host may
// be subtracted, those of now_ns() may not, since each process calibrates its own.
std::int64_t host_ticks();
double host_tick_ns();  // nanoseconds of one tick

}  // namespace elbowroom
