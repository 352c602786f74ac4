// 90 % intervals of predictions from what many sets of parameters predict.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "elbowroom/predict.h"

namespace elbowroom::predict {

constexpr double kNormal90 = 1.6448536269514722;  // half of the 90 % interval, in standard deviations
constexpr double kLeastRate = 1e-9;               // MB/s; below it a logarithm means nothing

// The variance of logarithms, by Welford's recurrence: no memory, no cancellation.
class Spread {
 public:
  void add(double rate) {
    const double log = std::log(std::max(rate, kLeastRate));
    const double delta = log - mean_;
    count_ += 1;
    mean_ += delta / count_;
    squares_ += delta * (log - mean_);
  }

  // Around the best value; `discrepancy`: relative standard deviation of what the model cannot follow.
  elbow_predict_interval around(double value, double discrepancy) const {
    const double variance = count_ > 0 ? squares_ / count_ : 0.0;
    const double factor = std::exp(kNormal90 * std::sqrt(variance + discrepancy * discrepancy));
    return {value, value / factor, value * factor};
  }

 private:
  double count_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

// Evaluates all rows of parameters: the first, the best fit, into `best`; the others, draws, into `drawn` and then
// `spreads`. `evaluate(row, rates)` fills `rates`; all spans are of its length.
template <typename Evaluate>
void evaluate_draws(std::size_t rows, std::span<double> best, std::span<double> drawn, std::span<Spread> spreads,
                    const Evaluate& evaluate) {
  evaluate(0, best);
  for (std::size_t row = 1; row < rows; ++row) {
    evaluate(row, drawn);
    for (std::size_t k = 0; k < drawn.size(); ++k) {
      spreads[k].add(drawn[k]);
    }
  }
}

}  // namespace elbowroom::predict
