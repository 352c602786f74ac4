// Computing cores of the host: the probe's kernels, one bound thread on each.
#pragma once

#include <memory>

#include "loads.hpp"
#include "request.hpp"

namespace elbowroom::gpu_bench {

// Throws Unavailable where a core or node does not exist, may not be used, or lacks the memory.
std::unique_ptr<Load> make_cores(const Work& work);

}  // namespace elbowroom::gpu_bench
