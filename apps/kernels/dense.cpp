#include "kernels/dense.hpp"

#include <algorithm>

namespace elbowroom::kernels {
namespace {

constexpr double kLowest = 1;
constexpr double kHighest = 10;

}  // namespace

Blocks::Blocks(std::size_t block, std::size_t blocks, std::size_t first, std::size_t last, int node)
    : block_(block), blocks_(blocks), first_(first) {
  if (const std::size_t rows = last - first; rows > 0) {
    memory_ = Arena(rows * blocks * size() * sizeof(double), node);
  }
}

double definite_entry(const Problem& problem, std::size_t row, std::size_t column) {
  const auto order = static_cast<double>(problem.order);
  if (row == column) {
    const double along = (static_cast<double>(row) + 0.5) / order;
    return kLowest + (kHighest - kLowest) * along - problem.shift;
  }
  return uniform(problem.seed, std::min(row, column), std::max(row, column)) / (2 * order);
}

double left_entry(const Problem& problem, std::size_t row, std::size_t column) {
  return uniform(problem.seed, row, column);
}

double right_entry(const Problem& problem, std::size_t row, std::size_t column) {
  return uniform(problem.seed + 1, row, column);
}

void fill(const Problem& problem, Entry entry, std::size_t row, std::size_t column, double* block) {
  for (std::size_t i = 0; i < problem.block; ++i) {
    for (std::size_t j = 0; j < problem.block; ++j) {
      *block++ = entry(problem, row * problem.block + i, column * problem.block + j);
    }
  }
}

}  // namespace elbowroom::kernels
