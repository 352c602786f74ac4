// A sparse symmetric positive definite matrix: 27 neighbours on a grid, as in HPCG (Dongarra et al. 2016).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/problem.hpp"
#include "machine/machine.hpp"

namespace elbowroom::kernels {

inline constexpr std::size_t kStencil = 27;
// Values, columns, and the begin of a row.
inline constexpr double kSparseRowBytes = kStencil * (sizeof(double) + sizeof(std::int32_t)) + sizeof(std::int64_t);

// Each block is a plane of the grid, as square as its number of points allows, so a block row has three blocks that are
// not zero, and only planes at the border of a rank travel. Rows are compressed (values, columns, begins).
//
// A neighbour's weight is -1, the diagonal 29 + uniform(seed, row, row): by Gershgorin all eigenvalues are between 2 and 56.
class Sparse {
 public:
  // Of block rows `first` to `last` - 1, in memory of NUMA node `node`. Throws std::runtime_error when there is not enough.
  Sparse(const Problem& problem, std::size_t first, std::size_t last, int node);

  // Writes a block row; of several threads, each may write others.
  void fill(std::size_t row);
  // q = A p in one block row; p is the begin of the whole vector, q of the row.
  void multiply(std::size_t row, const double* p, double* q) const;
  // ||b - A x||^2 over one block row, from the grid instead of the stored columns.
  double residual(std::size_t row, const double* x, const double* b) const;
  // Entries of a block row that are not zero.
  std::size_t entries(std::size_t row) const;
  PageReport pages() const { return memory_.verify(memory_.size()); }

 private:
  double diagonal(std::size_t index) const;
  // Calls `visit` with the number of each neighbour of the point at x, y in plane `row`, itself included, rising.
  template <typename Visit>
  void neighbours(std::size_t row, std::size_t x, std::size_t y, const Visit& visit) const;
  std::size_t before(std::size_t row) const;  // entries of the rank's block rows in front of it

  Problem problem_;
  std::size_t first_;
  std::size_t last_;
  std::size_t width_;   // of a plane
  std::size_t height_;  // width_ * height_ = block
  Arena memory_;
  double* values_;         // each in memory_
  std::int32_t* columns_;  // of the whole matrix
  std::int64_t* begins_;   // of rows in values_ and columns_; the last one's end behind them
};

// Width and height of a plane of so many points: as near to each other as divisors are.
std::pair<std::size_t, std::size_t> plane_of(std::size_t points);

}  // namespace elbowroom::kernels
