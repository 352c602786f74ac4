// The loads of a case, and who makes them: copies by the driver, kernels of the device, cores of the host, the control.
#pragma once

#include <memory>

#include "gpu/gemm.hpp"
#include "kernels.hpp"
#include "loads.hpp"
#include "request.hpp"

namespace elbowroom::gpu_bench {

enum class Direction { h2d, d2h, d2d };

// Throws Unavailable for a batch copy where the driver has none.
std::unique_ptr<UnitLoad> make_copy(const gpu::Context& context, const Work& work, Direction direction);

// Kernels of the device that compute: the victims.
std::unique_ptr<UnitLoad> make_triad(const Kernels& kernels, const Work& work);
std::unique_ptr<UnitLoad> make_chain(const Kernels& kernels, const Work& work);
std::unique_ptr<UnitLoad> make_gemm(const gpu::Context& context, const gpu::BlasLibrary& blas, const Work& work);

// The control of cases: only asks an event, as other loads do, so that the other side must keep all of its rate.
std::unique_ptr<Load> make_control(const gpu::Context& context);

// Computing cores of the host: the probe's kernels, one bound thread on each.
// Throws Unavailable where a core or node does not exist, may not be used, or lacks the memory.
std::unique_ptr<Load> make_cores(const Work& work);

}  // namespace elbowroom::gpu_bench
