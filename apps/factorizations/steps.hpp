// What the tasks of a factorization compute, by LAPACK and BLAS.
#pragma once

#include <array>
#include <cstddef>

#include "taskflow/factorization.hpp"

namespace elbowroom::factorizations {

// Computes on tiles of `block` rows, in the order of the task's uses; false where the matrix has no such factor (it is not
// positive definite). QR's reflectors are applied `inner_block` at a time.
bool compute(taskflow::Step step, std::size_t block, std::size_t inner_block, void* const* tiles);

// Operations of a step, as LAPACK counts them to the leading order.
double flops(taskflow::Step step, std::size_t block);

// Seconds of each step on one core, in the order of Step: the least of `repetitions`, which other programs disturb least.
std::array<double, taskflow::kSteps> time_steps(std::size_t block, std::size_t inner_block, int repetitions);

}  // namespace elbowroom::factorizations
