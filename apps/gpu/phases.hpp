// Phases of a case: a side alone, or both together.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "loads.hpp"

namespace elbowroom::gpu_bench {

// A side: its loads, which run at once. Copies in both directions are two.
using Side = std::vector<std::unique_ptr<Load>>;

// A load does not get on, because the other holds what it needs.
class Stuck : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Of a phase: `seconds` are counted, after all loads run; `patience` is how long one may take until it runs or has
// finished enough; `look` is called once while all run, outside of what is counted.
struct Timing {
  double seconds = 0.1;
  double patience = 10;
  std::function<void()> look;
};

// Runs these sides at once, started in this order. All are active from before the first counted unit to after the last
// (docs/design/method.md, rule 1). One sample for each side: the sum of its loads. All loads are stopped when it returns
// or throws.
std::vector<Sample> run_phase(const std::vector<Side*>& sides, const Timing& timing);

}  // namespace elbowroom::gpu_bench
