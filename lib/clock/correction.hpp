// From one process's clock to the reference's, for events long after the clocks were compared.
//
// Piecewise linear between the moments of comparison (thesis of P. Swartvagher, 2022, section 3.4.2: two of them and a
// line; figure 3.18: constant outside), in whole ns: a double holds 2^53 ns, 104 days, but not products of times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "envelope.hpp"

namespace elbowroom::clock {

// At `local` ns of a clock, the reference's was `offset` ahead (reference - local), with its bounds.
struct SyncPoint {
  std::int64_t local = 0;
  Offset offset;
};

// A time of the reference and how wrong it may be, ns.
struct Corrected {
  std::int64_t time = 0;
  std::int64_t error = 0;
};

// What makes a correction less than it should be.
struct CorrectionFlags {
  bool none = false;       // no sync point: times are those of the local clock
  bool single = false;     // one only: offset without drift
  bool backwards = false;  // two points contradict time's order: the later was left out
  int rejected = 0;        // points that contradict their neighbours
};

class Correction {
 public:
  Correction() { flags_.none = true; }
  // Points in any order. Those that no clock of a steady rate explains are left out (see `rejected` and decisions.md);
  // the first and the last are kept if in doubt.
  explicit Correction(std::vector<SyncPoint> points);

  // The reference's time at `local`. Rises with `local`. Outside the points the nearest one's offset holds, and the error
  // grows with the distance, by the largest rate seen between points (100 ppm where there is one point only).
  Corrected at(std::int64_t local) const;

  // The same for moments after the last point, where one cannot wait for the next: the rate between the last two points
  // goes on, with what their bounds leave open of it and 1 ppm besides (100 ppm where there is one point only).
  Corrected ahead(std::int64_t local) const;

  const std::vector<SyncPoint>& points() const { return points_; }
  const CorrectionFlags& flags() const { return flags_; }

 private:
  Corrected inside(std::size_t right, std::int64_t local) const;
  Corrected outside(const SyncPoint& nearest, std::int64_t local) const;

  std::vector<SyncPoint> points_;   // rising
  std::vector<std::int64_t> bend_;  // ns: how far the clock may leave the line between points i and i + 1
  CorrectionFlags flags_;
  double rate_ = 100e-6;  // largest difference of rates between the clocks that was seen
};

// The points left when those are taken out that contradict their neighbours: a point is out when it lies further from
// the line through its neighbours than all bounds and the clock's own wandering (the median of such distances, times
// `strictness`) explain. The worst goes first, until none is left.
std::vector<SyncPoint> without_outliers(std::vector<SyncPoint> points, double strictness = 8);

}  // namespace elbowroom::clock
