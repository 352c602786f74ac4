// Kernels of the device that compute: the victims.
#pragma once

#include <memory>

#include "gpu/gemm.hpp"
#include "kernels.hpp"
#include "loads.hpp"
#include "request.hpp"

namespace elbowroom::gpu_bench {

std::unique_ptr<UnitLoad> make_triad(const Kernels& kernels, const Work& work);
std::unique_ptr<UnitLoad> make_chain(const Kernels& kernels, const Work& work);
std::unique_ptr<UnitLoad> make_gemm(const gpu::Context& context, const gpu::BlasLibrary& blas, const Work& work);

}  // namespace elbowroom::gpu_bench
