// Steady state as a decision: moving coefficient of variation over the last samples (docs/design/method.md, rule 2).
#pragma once

#include <cstddef>
#include <deque>

namespace elbowroom {

// Takes samples of one quantity and says from which one on it is steady: `window` consecutive samples whose
// standard deviation divided by their mean stays below `cov`.
class SteadyDetector {
 public:
  SteadyDetector(std::size_t window, double cov);

  // Returns true when the window is steady now or was before: the decision is kept once made.
  bool add(double sample);
  bool steady() const { return steady_; }
  // Index, counted from the first sample added, of the first sample of the first steady window.
  std::size_t first() const { return first_; }

 private:
  std::size_t window_;
  double cov_;
  std::deque<double> last_;
  std::size_t added_ = 0;
  std::size_t first_ = 0;
  bool steady_ = false;
};

// Standard deviation (of the sample, n - 1) over mean; infinite when the mean is not positive or n < 2.
double coefficient_of_variation(const std::deque<double>& samples);

}  // namespace elbowroom
