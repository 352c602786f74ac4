// The matrix of a CG: dense or sparse, in block rows.
#pragma once

#include <memory>
#include <vector>

#include "kernels/problem.hpp"
#include "machine/machine.hpp"

namespace elbowroom::kernels {

// A task's share of q = A p: in one block row, what some blocks of p contribute.
struct Part {
  std::size_t row;
  std::vector<std::size_t> columns;
  bool first;  // q is written, not added to
};

class Matrix {
 public:
  virtual ~Matrix() = default;
  virtual void fill(std::size_t row) = 0;
  // `p` is the begin of the whole vector, `q` of the block row's part.
  virtual void multiply(const Part& part, const double* p, double* q) const = 0;
  // ||b - A x||^2 over one block row, by plain loops that share nothing with multiply().
  virtual double residual(std::size_t row, const double* x, const double* b) const = 0;
  virtual double entries(std::size_t row) const = 0;    // that are not zero
  virtual double row_bytes(std::size_t row) const = 0;  // that one product reads of the matrix
  virtual PageReport pages() const = 0;
};

std::unique_ptr<Matrix> make_matrix(const Problem& problem, std::size_t first, std::size_t last, int node);

// The parts of rank `rank`'s product, in the order in which they are asked for and added up: those that need only blocks
// of its own first.
std::vector<Part> parts_of(const Problem& problem, const Rows& rows, std::size_t rank);
// The blocks of p that a rank's product needs from others, rising.
std::vector<std::size_t> needed_by(const Problem& problem, const Rows& rows, std::size_t rank);

}  // namespace elbowroom::kernels
