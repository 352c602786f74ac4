#include "pace.hpp"

#include <algorithm>
#include <cmath>

namespace elbowroom::load {

Pace::Pace(double rate, std::int64_t start_ns)
    : ns_per_byte_(std::isinf(rate) ? 0 : 1e9 / rate), next_ns_(static_cast<double>(start_ns)) {}

std::int64_t Pace::due_ns(std::int64_t now_ns) {
  next_ns_ = std::max(next_ns_, static_cast<double>(now_ns - kDebtNs));
  return std::max(static_cast<std::int64_t>(next_ns_), now_ns);
}

void Pace::moved(std::uint64_t bytes) { next_ns_ += static_cast<double>(bytes) * ns_per_byte_; }

}  // namespace elbowroom::load
