// What a device cannot exceed, by its own figures: a rate above is an error of the measurement.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "gpu/device.hpp"
#include "gpu/management.hpp"
#include "request.hpp"

namespace elbowroom::gpu_bench {

struct Peaks {
  std::optional<double> memory_mb_s;  // of the device's memory
  std::optional<double> link_mb_s;    // of PCIe, in each direction
  std::optional<double> mflop_s;      // of dense BF16 products
  std::size_t cache = 0;              // bytes of L2, in which small buffers exceed the memory
};

// `management`: without it the link's peak is unknown.
Peaks peaks_of(const gpu::DeviceFacts& device, const std::optional<gpu::ManagementFacts>& management);
// Of the rate that work has, in its unit; nothing where it is unknown or work has none.
std::optional<double> peak_of(const Work& work, const Peaks& peaks);
// "" or why this rate is wrong, with both numbers.
std::string above_peak(const Work& work, double rate, const std::string& unit, const Peaks& peaks);
nlohmann::json peaks_json(const Peaks& peaks);

}  // namespace elbowroom::gpu_bench
