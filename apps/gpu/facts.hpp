// What `gpu-bench facts` prints, and the first line of a measurement: driver, device, link, clocks, libraries.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gpu/device.hpp"

namespace elbowroom::gpu_bench {

// What is missing is an object with `unknown`, the reason, and `hint`; never a failure.
nlohmann::json facts(int device, const std::vector<std::string>& libraries);
nlohmann::json unknown(const std::string& reason, const std::string& hint);

}  // namespace elbowroom::gpu_bench
