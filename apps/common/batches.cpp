#include "common/batches.hpp"

#include <numeric>

#include "base/clock.hpp"
#include "common/settings.hpp"
#include "protocol/batching.hpp"
#include "protocol/steady.hpp"

namespace elbowroom::program {
namespace {

constexpr std::size_t kCalibrations = 12;  // of how many make a batch, at most

}  // namespace

BatchWindow read_window(const nlohmann::json& request) {
  const nlohmann::json steady = request.value("steady", nlohmann::json::object());
  return {read(request, "window", 0.12), read(steady, "window", std::size_t{7}), read(steady, "cov", 0.05),
          read(steady, "limit", 1.0)};
}

double Batches::seconds() const {
  const std::int64_t sum =
      std::accumulate(measured.begin(), measured.end(), std::int64_t{0},
                      [](std::int64_t so_far, const Batch& batch) { return so_far + batch.took_ns; });
  return static_cast<double>(sum) * 1e-9;
}

std::int64_t Batches::count() const {
  return std::accumulate(measured.begin(), measured.end(), std::int64_t{0},
                         [](std::int64_t so_far, const Batch& batch) { return so_far + batch.count; });
}

Batches measure_batches(const BatchWindow& window, const std::function<std::int64_t(std::int64_t)>& timed) {
  Batches result;
  const double target = batch_target_ns(window.seconds, minimum_sample_ns());
  std::int64_t count = 1;
  while (result.before < kCalibrations) {
    const auto took = static_cast<double>(timed(count));
    ++result.before;
    if (batch_fits(count, took, target, 1)) {
      break;
    }
    count = next_iterations(count, took, target, 1);
  }
  SteadyDetector steady(window.steady_window, window.steady_cov);
  std::vector<Batch> all;
  result.start_ns = now_ns();
  for (double measured = 0, waited = 0;;) {
    all.push_back({timed(count), count});
    const auto took = static_cast<double>(all.back().took_ns);
    result.steady = steady.add(took / static_cast<double>(count));
    const double total = static_cast<double>(now_ns() - result.start_ns) * 1e-9;
    measured = result.steady ? measured + took * 1e-9 : 0;
    waited = result.steady ? waited : total;
    const bool enough = result.steady && all.size() - steady.first() >= window.steady_window;
    if ((enough && measured >= window.seconds) || (!result.steady && waited >= window.limit + window.seconds)) {
      break;
    }
  }
  result.end_ns = now_ns();
  const std::size_t first = result.steady ? steady.first() : 0;
  result.before += first;
  result.measured.assign(all.begin() + static_cast<std::ptrdiff_t>(first), all.end());
  return result;
}

}  // namespace elbowroom::program
