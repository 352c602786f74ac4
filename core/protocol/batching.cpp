#include "protocol/batching.hpp"

#include <algorithm>
#include <cmath>

#include "protocol/due_message.hpp"

namespace elbowroom {

double batch_target_ns(double window_s, double minimum_ns) { return std::max(minimum_ns, window_s * 1e9 / 64); }

std::int64_t next_iterations(std::int64_t iterations, double took_ns, double target_ns, std::int64_t least) {
  const double per_iteration = std::max(took_ns, 1.0) / static_cast<double>(iterations);
  const double wanted = std::ceil(target_ns / per_iteration);
  const double most = static_cast<double>(iterations) * 32;
  return std::max(least, static_cast<std::int64_t>(std::min(wanted, most)));
}

bool batch_fits(std::int64_t iterations, double took_ns, double target_ns, std::int64_t least) {
  return took_ns >= target_ns / 2 && (took_ns <= 4 * target_ns || iterations <= least);
}

std::int64_t due_messages(double window_s, double period_s, double round_trip_ns) {
  const double interval = std::max(period_s * 1e9, round_trip_ns);
  return std::max<std::int64_t>(2, static_cast<std::int64_t>(std::ceil(window_s * 1e9 / interval)));
}

}  // namespace elbowroom
