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
  bool none = false;           // no sync point: times are those of the local clock
  bool single = false;         // one only: offset without drift
  bool backwards = false;      // two points contradict time's order: the later was left out
  int rejected = 0;            // points that contradict their neighbours
  int steps = 0;               // stretches between points within which the clock jumped: their bars span the jump
  int jumped = 0;              // points during whose comparison the clock jumped
  std::int64_t unlocated = 0;  // ns, in all bars: the clock may have jumped so far and back between any two points
};

// Between two points that were used: at `from` the reference was `offset` ahead, and gains `drift_ppb` on the clock.
struct Segment {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t offset = 0;
  double drift_ppb = 0;
  std::int64_t error = 0;  // largest inside, ns
  bool stepped = false;
};

class Correction {
 public:
  Correction();
  // Points in any order. Those that no clock of a steady rate explains are left out (see `rejected` and decisions.md);
  // the first and the last are kept if in doubt. The clock may have been where a point that was left out says: the bars
  // around it span that.
  explicit Correction(std::vector<SyncPoint> points);

  // The reference's time at `local`. Rises with `local`. Outside the points the nearest one's offset holds, and the error
  // grows with the distance, by the largest rate seen between points (200 ppm where there is one point only: two
  // clocks, each 100 ppm off).
  Corrected at(std::int64_t local) const;

  // The same for moments after the last point, where one cannot wait for the next: the rate between the last two points
  // without a jump between them goes on, with what their bounds leave open of it and 1 ppm besides (200 ppm where there
  // are none).
  Corrected ahead(std::int64_t local) const;

  const std::vector<SyncPoint>& points() const { return points_; }
  // Where the lines bend that `at` follows: the points, and two between points where the clock jumped. Nobody knows when it
  // did: the rate before holds up to the middle, the one after from there on, and in between times still rise.
  const std::vector<SyncPoint>& knots() const { return knots_; }
  const CorrectionFlags& flags() const { return flags_; }
  std::vector<Segment> segments() const;  // none where there are fewer than two points

  // What the reference gained in `span` ns of this clock lately, ns; 0 where no rate is known.
  std::int64_t gained(std::int64_t span) const;

 private:
  // How a clock goes between two points: by `slope`, and it leaves the line by `bend` ns at most.
  struct Stretch {
    double slope = 0;
    std::int64_t bend = 0;
    std::int64_t jump = 0;  // how far the clock was seen to jump, ns
    bool stepped = false;
  };
  void find_steps();
  void find_bends();
  void find_unlocated(const std::vector<SyncPoint>& given);
  void span_left_out(const std::vector<SyncPoint>& given);
  void find_knots();
  void add_turn(std::size_t i);
  double span(std::size_t i) const;
  Corrected inside(std::size_t right, std::int64_t local) const;
  Corrected outside(const SyncPoint& nearest, std::int64_t local) const;

  std::vector<SyncPoint> points_;  // rising
  std::vector<SyncPoint> knots_;   // rising
  std::vector<Stretch> between_;   // points i and i + 1
  std::size_t steady_ = 0;         // the last of these without a jump, and one more; 0: none
  CorrectionFlags flags_;
  double wander_;  // how far the rate may leave what neighbours show
  double rate_;    // largest difference of rates between the clocks that was seen
};

// How far from the reference the clock is at `local`, some moments after it was found to be at `known`: at the rate that
// `correction` knows of late, with bounds for any rate a clock may have.
Offset later(const SyncPoint& known, const Correction& correction, std::int64_t local);

// The points left when those between the ends are taken out that contradict their neighbours: further from the line through both
// neighbours, and from the lines through the two points before and through the two after, than a quarter of all bounds and
// the clock's own wandering (the median distance from the line through both neighbours, times `strictness`) explain. A
// clock that jumps, or goes on at another rate, agrees with one side.
std::vector<SyncPoint> without_outliers(std::vector<SyncPoint> points, double strictness = 8);

}  // namespace elbowroom::clock
