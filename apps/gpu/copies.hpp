// Copies by the driver between host and device, and inside the device.
#pragma once

#include <memory>

#include "loads.hpp"
#include "request.hpp"

namespace elbowroom::gpu_bench {

enum class Direction { h2d, d2h, d2d };

// Throws Unavailable for a batch copy where the driver has none.
std::unique_ptr<UnitLoad> make_copy(const gpu::Context& context, const Work& work, Direction direction);

}  // namespace elbowroom::gpu_bench
