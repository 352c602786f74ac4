// Clocks that drift and links that are slow, uneven and lossy, to try the comparison of clocks on: what real ones do in
// an hour takes a moment here, and the truth is known.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "envelope.hpp"

namespace elbowroom::clock {

// Random numbers that are the same everywhere: SplitMix64.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  double even();                    // 0 to 1
  double normal();                  // mean 0, deviation 1
  double exponential(double mean);  // 0 and above

 private:
  std::uint64_t state_;
};

// The clock jumps by `by` ns at `at` ns of true time.
struct Step {
  std::int64_t at;
  std::int64_t by;
};

struct ClockSetup {
  std::int64_t offset = 0;  // ns at true time 0
  double drift_ppm = 0;     // constant part of the rate
  double wave_ppm = 0;      // thermal: amplitude of a slow wave of the rate,
  double wave_s = 600;      // its period,
  double wave_phase = 0;    // and phase (radians)
  double walk_ppm = 0;      // random walk of the rate: deviation after one second
  double slew_ppm = 0;      // rate added by a daemon that slews, every other `slew_s`
  double slew_s = 60;
  std::vector<Step> steps = {};
};

// A clock over `duration` ns of true time.
class SimulatedClock {
 public:
  SimulatedClock(ClockSetup setup, std::int64_t duration, std::uint64_t seed);
  std::int64_t at(std::int64_t truth) const;

 private:
  double gained(std::int64_t truth) const;  // ns, steps left out

  ClockSetup setup_;
  std::vector<double> walked_;  // ns gained by the walk at each full second
  std::vector<double> rates_;   // ppm of the walk during each second
};

struct LinkSetup {
  double latency_ns = 1000;    // one way, at least
  double jitter_ns = 100;      // mean of what is added
  bool heavy = false;          // what is added has a heavy tail: Pareto's law, exponent 1.5, of twice that mean
  double asymmetry = 0;        // share of the latency that the way there takes more, and the way back less
  double loss = 0;             // probability that a message is lost; it is then sent again
  double again_ns = 10e6;      // after so long, twice as long the next time
  double preempted = 0;        // probability that a side is held up,
  double held_up_ns = 500000;  // this long on average
};

// How long a message is on its way, ns.
std::int64_t travel(const LinkSetup& link, Chance& chance, bool there);

// An exchange that starts at `truth` and moves it on to its end.
Exchange simulated_exchange(const SimulatedClock& asker, const SimulatedClock& answerer, const LinkSetup& link,
                            Chance& chance, std::int64_t& truth);

// Compares two simulated clocks from `truth` on as real ones are, each the asker once, and counts the exchanges. None
// where one of them is stepped again and again.
std::optional<Compared> simulated_comparison(const SimulatedClock& asker, const SimulatedClock& answerer,
                                             const LinkSetup& link, Chance& chance, std::int64_t& truth,
                                             std::int64_t& exchanges);

}  // namespace elbowroom::clock
