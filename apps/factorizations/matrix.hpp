// The tiles of a matrix that a rank owns, and whether a factorization of them is right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "exchange/job.hpp"
#include "taskflow/factorization.hpp"

namespace elbowroom::factorizations {

using taskflow::Data;

inline constexpr int kMostBlock = 8192;         // rows of a tile
inline constexpr std::size_t kInnerBlock = 32;  // rows of a T: reflectors of QR's that are applied together

// How a problem's tiles are stored: each in one piece, column by column.
struct Layout {
  taskflow::Problem problem;
  std::size_t block = 0;        // rows and columns of a tile
  std::size_t inner_block = 0;  // rows of a T of QR's: reflectors that are applied together
  std::uint64_t seed = 1;

  std::size_t order() const { return problem.rows * block; }
  std::size_t columns() const { return problem.columns * block; }
  std::size_t doubles(Data data) const { return (problem.is_factor(data) ? inner_block : block) * block; }
  std::size_t bytes(Data data) const { return doubles(data) * sizeof(double); }
  // Bytes of the rank that owns most of them.
  double most_bytes() const;
  // Of Cholesky's: symmetric, uniform in [-1, 1), with `order` on the diagonal, so by Gershgorin positive definite. Of QR's:
  // uniform in [-1, 1).
  double entry(std::size_t row, std::size_t column) const;
};

class Matrix {
 public:
  // The tiles of `rank`, untouched.
  Matrix(const Layout& layout, int rank);

  double* at(Data data) const { return tiles_[data].get(); }  // null where another rank owns them
  void fill();
  // ||A x - L (L^T x)|| / ||A x|| of Cholesky's; ||A^T (A x) - R^T (R x)|| / ||A^T (A x)|| of QR's: 2-norms, for a vector x of
  // entries uniform in [-1, 1). Collective.
  double residual(const Job& job) const;

 private:
  enum class Part { kWhole, kLower, kUpper };
  std::vector<double> multiply(const Job& job, bool factored, bool transposed, const std::vector<double>& x) const;
  void add_product(unsigned row, unsigned column, const double* tile, bool transposed, Part part,
                   const std::vector<double>& x, std::vector<double>& y) const;

  Layout layout_;
  int rank_;
  std::vector<std::unique_ptr<double[]>> tiles_;
};

}  // namespace elbowroom::factorizations
