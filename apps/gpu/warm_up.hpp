// Clocks and link of a device get faster during the first seconds of work, and slower where it takes much power.
#pragma once

#include <map>
#include <string>

#include "case_loads.hpp"
#include "gpu/management.hpp"

namespace elbowroom::gpu_bench {

class WarmUp {
 public:
  static constexpr int kSteadyPhases = 4;  // that must agree
  static constexpr int kMostPhases = 20;

  using Read = std::function<gpu::DeviceReading()>;
  explicit WarmUp(Read read) : read_(std::move(read)) {}

  // Warms the loads of a case, and runs them at once, a phase after the other, until the SM clock and the link did not
  // change in kSteadyPhases. One phase is enough where loads of these kinds were steady before as they are now. Adds a
  // note to the case where it never was steady.
  void run(CaseLoads& loads, Timing timing);

 private:
  Read read_;
  std::map<std::string, gpu::DeviceReading> steady_;  // by the kinds of the loads
};

}  // namespace elbowroom::gpu_bench
