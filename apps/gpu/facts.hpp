// What `gpu-bench facts` prints, and the first line of a measurement: driver, device, link, clocks, libraries.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/management.hpp"

namespace elbowroom::gpu_bench {

// What is missing is an object with `unknown`, the reason, and `hint`; never a failure.
nlohmann::json facts(int device, const std::vector<std::string>& libraries);
// Clocks, link, power and why clocks are low, for a line of a phase; null is unknown.
nlohmann::json reading_json(const gpu::DeviceReading& reading);
nlohmann::json unknown(const std::string& reason, const std::string& hint);

}  // namespace elbowroom::gpu_bench
