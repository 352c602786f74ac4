#include "protocol/steady.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace elbowroom {

double coefficient_of_variation(const std::deque<double>& samples) {
  const auto count = static_cast<double>(samples.size());
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / std::max(count, 1.0);
  if (samples.size() < 2 || !(mean > 0)) {
    return std::numeric_limits<double>::infinity();
  }
  double squares = 0;
  for (const double sample : samples) {
    squares += (sample - mean) * (sample - mean);
  }
  return std::sqrt(squares / (count - 1)) / mean;
}

SteadyDetector::SteadyDetector(std::size_t window, double cov) : window_(std::max<std::size_t>(window, 2)), cov_(cov) {}

bool SteadyDetector::add(double sample) {
  ++added_;
  if (steady_) {
    return true;
  }
  last_.push_back(sample);
  if (last_.size() > window_) {
    last_.pop_front();
  }
  if (last_.size() == window_ && coefficient_of_variation(last_) < cov_) {
    steady_ = true;
    first_ = added_ - window_;
  }
  return steady_;
}

}  // namespace elbowroom
