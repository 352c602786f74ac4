// A whole job of simulated clocks: compared as `job_clock` compares real ones, corrected as a merge corrects a trace, and
// judged by the truth, which only a simulation knows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "correction.hpp"
#include "simulated.hpp"

namespace elbowroom::clock {

enum class ClockKind { affine, thermal, walk, steps, slewing, mixed };
enum class LinkKind { symmetric, asymmetric, lossy, heavy_tail, busy };

// One clock of that kind over `duration` ns; each differs by chance.
ClockSetup clock_of(ClockKind kind, std::int64_t duration, Chance& chance);
LinkSetup link_of(LinkKind kind);

struct Plan {
  int clocks = 1024;
  std::int64_t duration = 600'000'000'000;  // ns
  std::int64_t every = 10'000'000'000;      // ns between comparisons
  ClockKind clock = ClockKind::thermal;
  LinkKind link = LinkKind::symmetric;
  double bad = 0;  // share of the sync points that are told wrong
  std::uint64_t seed = 1;
  std::int64_t moments = 200'000;   // at which errors are looked at, of all clocks together
  std::int64_t messages = 200'000;  // between random clocks, for tachyons
  int shown = 4;                    // clocks whose points are told one by one
};

// What corrected times are worth; durations in ns.
struct Judged {
  std::string name;
  std::int64_t p50 = 0;
  std::int64_t p95 = 0;
  std::int64_t most = 0;
  std::int64_t bound_p50 = 0;  // half the width of the published bounds
  double inside = 0;           // share of the moments where the error is inside its bound
  std::int64_t unflagged = 0;  // moments where it is not, of clocks whose flags tell nothing
  std::int64_t tachyons = 0;   // messages that arrive before they are sent
};

// A point as it was told, and whether the correction uses it.
struct ShownPoint {
  SyncPoint point;
  bool used = false;
};

// How wrong one clock's corrected time is at one moment.
struct ShownError {
  std::int64_t local = 0;
  std::int64_t error = 0;  // corrected - reference
  std::int64_t bound = 0;
};

struct Shown {
  int clock = 0;
  std::vector<ShownPoint> points;
  std::vector<Segment> segments;
  CorrectionFlags flags;
  std::vector<ShownError> errors;
};

struct Outcome {
  int rounds = 0;              // of one comparison of all clocks
  int comparisons = 0;         // of all clocks
  std::int64_t exchanges = 0;  // messages there and back, of all comparisons
  std::int64_t longest = 0;    // ns that the longest comparison of all clocks took
  std::int64_t points = 0;     // of all clocks but the reference
  std::int64_t corrupted = 0;
  std::int64_t rejected = 0;
  std::int64_t steps = 0;         // stretches that are flagged
  std::int64_t incomparable = 0;  // comparisons that failed: clocks stepped all the time
  std::int64_t messages = 0;
  std::vector<Judged> methods;  // two plain barriers; one point; two points; all points
  std::vector<Shown> shown;
};

Outcome simulate(const Plan& plan);

}  // namespace elbowroom::clock
