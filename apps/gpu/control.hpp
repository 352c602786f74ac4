// The control of cases: only asks an event, as other loads do, so that the other side must keep all of its rate.
#pragma once

#include <memory>

#include "loads.hpp"

namespace elbowroom::gpu_bench {

std::unique_ptr<Load> make_control(const gpu::Context& context);

}  // namespace elbowroom::gpu_bench
