// Which engine makes a copy: the driver may use SMs where a copy engine was meant.
#pragma once

#include <string>

#include "kernels.hpp"
#include "load_kinds.hpp"

namespace elbowroom::gpu_bench {

// Holds every SM and starts one copy of this kind: it ends meanwhile only if a copy engine makes it. "copy engine" or
// "SMs". `patience`: s that the copy is given.
std::string prove_engine(const Kernels& kernels, const Work& work, Direction direction, double patience);

}  // namespace elbowroom::gpu_bench
