// C = A B in blocks: block rows of B travel while others are multiplied (SUMMA, van de Geijn and Watts 1997, on a grid of
// one column of ranks). Each has a buffer of its own, as in StarPU's cache of what was received: with two in turn, sends
// would wait until the receiver has computed, and their bandwidth would tell that.
#pragma once

#include <array>

#include "kernels/algorithm.hpp"
#include "kernels/dense.hpp"

namespace elbowroom::kernels {

class Gemm final : public Algorithm {
 public:
  Gemm(const Problem& problem, const Rows& rows, std::size_t rank, int comp_node, int comm_node, Engine& engine);

  void fill() override;
  Outcome run(std::size_t iterations) override;
  Checked check(const Job& job) const override;
  void plain(std::size_t thread, std::size_t threads) override;
  Counts counts(std::size_t iterations) const override;
  std::vector<double> result() const override;
  std::vector<PageReport> comp_pages() const override;
  std::vector<PageReport> comm_pages() const override;

 private:
  bool owns(std::size_t row) const { return row >= first_ && row < last_; }
  // Each asks for what belongs to one step of a product.
  void pass_on(std::size_t step);
  void multiply(std::size_t step);

  const Problem problem_;
  const Rows rows_;
  const std::size_t rank_;
  const std::size_t first_;
  const std::size_t last_;
  Engine& engine_;
  std::vector<std::size_t> steps_;   // block rows of B in the order of their turns: ranks send by turns, too
  Blocks a_, b_, c_;                 // the rank's block rows
  Blocks buffers_;                   // block rows of B of others
  std::vector<std::size_t> places_;  // by step: the row of buffers_ that others' rows come to
  std::vector<Datum> b_data_, c_data_, buffer_data_;  // by block
};

}  // namespace elbowroom::kernels
