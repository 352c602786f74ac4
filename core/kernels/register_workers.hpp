// Workers of the kernels that stay in registers.
#pragma once

#include <memory>

#include "kernels/kernel.hpp"
#include "kernels/loops.hpp"

namespace elbowroom {

std::unique_ptr<Worker> make_prime();
// Throws std::invalid_argument with a sentence where the dispatched instruction set has no such width.
std::unique_ptr<Worker> make_fma(loops::Width width);

}  // namespace elbowroom
