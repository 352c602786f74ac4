// Dense matrices in square blocks, each block in one piece.
#pragma once

#include <cstddef>

#include "common/blas.hpp"
#include "kernels/problem.hpp"
#include "machine/machine.hpp"

namespace elbowroom::kernels {

// Block rows `first` to `last` - 1 of a matrix of blocks^2 blocks; a block holds its rows one behind the other.
class Blocks {
 public:
  // In memory of NUMA node `node`, untouched. Throws std::runtime_error when there is not enough.
  Blocks(std::size_t block, std::size_t blocks, std::size_t first, std::size_t last, int node);

  std::size_t size() const { return block_ * block_; }  // doubles of a block
  double* at(std::size_t row, std::size_t column) const {
    return static_cast<double*>(memory_.data()) + ((row - first_) * blocks_ + column) * size();
  }
  // Without rows there are none.
  PageReport pages() const { return memory_.size() > 0 ? memory_.verify(memory_.size()) : PageReport{}; }

 private:
  std::size_t block_;
  std::size_t blocks_;
  std::size_t first_;
  Arena memory_;
};

// An entry of the symmetric positive definite matrix of a dense CG: the diagonal rises from 1 to 10, everything beside it
// is uniform(seed, lower, higher index) / (2 order), so by Gershgorin all eigenvalues are between 0.5 and 10.5.
double definite_entry(const Problem& problem, std::size_t row, std::size_t column);
// Entries of the factors of a product: uniform in [-1, 1).
double left_entry(const Problem& problem, std::size_t row, std::size_t column);
double right_entry(const Problem& problem, std::size_t row, std::size_t column);

using Entry = double (*)(const Problem&, std::size_t row, std::size_t column);
// Writes one block.
void fill(const Problem& problem, Entry entry, std::size_t row, std::size_t column, double* block);

using program::blas;
using program::multiply;
using program::multiply_blocks;
using program::one_thread_each;

}  // namespace elbowroom::kernels
