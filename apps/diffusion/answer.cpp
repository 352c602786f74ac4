#include "diffusion/answer.hpp"

#include <algorithm>
#include <numeric>

namespace elbowroom::diffusion {
namespace {

using nlohmann::json;

// The median over the steps, and each step.
json durations(const std::vector<double>& seconds, const char* key = "value") {
  std::vector<double> sorted;
  for (const double one : seconds) {
    sorted.push_back(1e6 * one);
  }
  const json batches = sorted;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  const double median = sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  return {{key, median}, {"unit", "us"}, {"batches", batches}};
}

json phase(const char* name, double seconds, bool valid) {
  return {{"phase", name},
          {"status", valid ? "ok" : "void"},
          {"flags", valid ? json::array() : json::array({"validation_failed"})},
          {"measured_s", seconds}};
}

}  // namespace

json phases_of(Variant variant, const StepTimes& times, bool valid) {
  const double seconds = std::accumulate(times.step.begin(), times.step.end(), 0.0);
  const bool overlaps = variant == Variant::overlap;
  json phases = json::array();
  if (computes(variant)) {
    phases.push_back(phase(overlaps ? "AB" : "A", seconds, valid));
    phases.back()["comp"] = durations(times.interior, "rate");
    phases.back()["separator"] = durations(times.separator);
  }
  if (communicates(variant)) {
    if (!overlaps) {
      phases.push_back(phase("B", phases.empty() ? seconds : 0, valid));
    }
    phases.back()["comm"] = durations(times.exchange);
  }
  phases.front()["total"] = durations(times.step);
  for (std::size_t index = 0; index < phases.size(); ++index) {
    phases[index]["index"] = index;
  }
  return phases;
}

}  // namespace elbowroom::diffusion
