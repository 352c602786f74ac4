#include "kernels/sparse.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace elbowroom::kernels {
namespace {

constexpr double kDiagonal = 29;
constexpr double kNeighbour = -1;

// Pairs of neighbours along one axis of so many points, each point its own neighbour, too.
std::size_t pairs(std::size_t points) { return 3 * points - 2; }

}  // namespace

std::pair<std::size_t, std::size_t> plane_of(std::size_t points) {
  auto width = static_cast<std::size_t>(std::sqrt(static_cast<double>(points)));
  while (points % width != 0) {
    --width;
  }
  return {width, points / width};
}

Sparse::Sparse(const Problem& problem, std::size_t first, std::size_t last, int node)
    : problem_(problem),
      first_(first),
      last_(last),
      width_(plane_of(problem.block).first),
      height_(plane_of(problem.block).second) {
  const std::size_t rows = (last - first) * problem.block;
  const std::size_t all = before(last);
  const std::size_t even = all + all % 2;  // so that begins are aligned
  memory_ = Arena(all * sizeof(double) + even * sizeof(std::int32_t) + (rows + 1) * sizeof(std::int64_t), node);
  values_ = static_cast<double*>(memory_.data());
  columns_ = reinterpret_cast<std::int32_t*>(values_ + all);
  begins_ = reinterpret_cast<std::int64_t*>(columns_ + even);
}

std::size_t Sparse::entries(std::size_t row) const {
  const std::size_t planes = 1 + (row > 0 ? 1U : 0U) + (row + 1 < problem_.blocks() ? 1U : 0U);
  return planes * pairs(width_) * pairs(height_);
}

std::size_t Sparse::before(std::size_t row) const {
  std::size_t sum = 0;
  for (std::size_t i = first_; i < row; ++i) {
    sum += entries(i);
  }
  return sum;
}

double Sparse::diagonal(std::size_t index) const {
  return kDiagonal + uniform(problem_.seed, index, index) - problem_.shift;
}

template <typename Visit>
void Sparse::neighbours(std::size_t row, std::size_t x, std::size_t y, const Visit& visit) const {
  const auto from = [](std::size_t at) { return at - (at > 0 ? 1U : 0U); };
  for (std::size_t k = from(row); k < std::min(row + 2, problem_.blocks()); ++k) {
    for (std::size_t j = from(y); j < std::min(y + 2, height_); ++j) {
      for (std::size_t i = from(x); i < std::min(x + 2, width_); ++i) {
        visit(k * problem_.block + j * width_ + i);
      }
    }
  }
}

void Sparse::fill(std::size_t row) {
  std::size_t at = before(row);
  std::int64_t* begin = begins_ + (row - first_) * problem_.block;
  for (std::size_t point = 0; point < problem_.block; ++point) {
    const std::size_t own = row * problem_.block + point;
    *begin++ = static_cast<std::int64_t>(at);
    neighbours(row, point % width_, point / width_, [&](std::size_t column) {
      columns_[at] = static_cast<std::int32_t>(column);
      values_[at++] = column == own ? diagonal(own) : kNeighbour;
    });
  }
  if (row + 1 == last_) {
    *begin = static_cast<std::int64_t>(at);
  }
}

double Sparse::residual(std::size_t row, const double* x, const double* b) const {
  double squares = 0;
  for (std::size_t point = 0; point < problem_.block; ++point) {
    const std::size_t own = row * problem_.block + point;
    double rest = b[point];
    neighbours(row, point % width_, point / width_,
               [&](std::size_t column) { rest -= (column == own ? diagonal(own) : kNeighbour) * x[column]; });
    squares += rest * rest;
  }
  return squares;
}

void Sparse::multiply(std::size_t row, const double* p, double* q) const {
  const double* value = values_;
  const std::int32_t* column = columns_;
  const std::int64_t* begin = begins_ + (row - first_) * problem_.block;
  for (std::size_t i = 0; i < problem_.block; ++i) {
    double sum = 0;
    for (std::int64_t at = begin[i]; at < begin[i + 1]; ++at) {
      sum += value[at] * p[column[at]];
    }
    q[i] = sum;
  }
}

}  // namespace elbowroom::kernels
