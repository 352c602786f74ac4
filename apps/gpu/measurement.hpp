// Measures the cases of a request and prints each sample as it comes.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "request.hpp"

namespace elbowroom::gpu_bench {

using Print = std::function<void(const nlohmann::json&)>;

// One line of facts, one for each sample, one at the end of each case. A case that cannot be measured is one line with
// the reason, and the others go on; after a device is lost, all that follow are so.
void measure(const Request& request, const Print& print);

double median(std::vector<double> values);

}  // namespace elbowroom::gpu_bench
