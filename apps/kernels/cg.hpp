// Conjugate gradients (Hestenes and Stiefel 1952) in blocks: the search vector's blocks travel while those at hand are
// multiplied.
#pragma once

#include <array>
#include <memory>

#include "kernels/algorithm.hpp"
#include "kernels/matrix.hpp"

namespace elbowroom::kernels {

inline constexpr double kTolerance = 1e-10;  // of the residual that is updated, relative to the right side

class Cg final : public Algorithm {
 public:
  Cg(const Problem& problem, const Rows& rows, std::size_t rank, int comp_node, int comm_node, Engine& engine);

  void fill() override;
  Outcome run(std::size_t iterations) override;
  Checked check(const Job& job) const override;
  void plain(std::size_t thread, std::size_t threads) override;
  Counts counts(std::size_t iterations) const override;
  std::vector<double> result() const override;
  std::vector<PageReport> comp_pages() const override;
  std::vector<PageReport> comm_pages() const override;

 private:
  enum Vector { kX, kR, kQ, kB, kVectors };
  double* own(Vector vector, std::size_t row) const;
  double* p(std::size_t row) const { return static_cast<double*>(search_.data()) + row * problem_.block; }
  double solution(std::size_t index) const { return uniform(problem_.seed + 2, index, 0); }

  // Each asks for tasks and messages; for all block rows of this rank.
  void begin();
  void exchange_search();
  void multiply();
  void share_sums(std::size_t which);
  void add_sums(std::size_t which, std::function<void(double)> next);
  void update();
  void iterate();
  void for_rows(const std::vector<Use>& uses, bool writes_search, const std::function<void(std::size_t)>& body);

  const Problem problem_;
  const Rows rows_;
  const std::size_t rank_;
  const std::size_t first_;
  const std::size_t last_;
  Engine& engine_;
  std::unique_ptr<Matrix> matrix_;
  std::vector<Part> parts_;
  Arena state_;   // x, r, q and b of the rank's rows
  Arena search_;  // p of all rows; those that this rank needs are ever touched
  // A sum over each block row, of all rows: added up in their order, so that how many ranks and threads there are does not
  // change a bit of it. p q and r r.
  std::array<std::vector<double>, 2> sums_;
  std::vector<double> partial_;  // of the rank's rows

  struct Scalars {
    double rr, pq, alpha, beta;
  } scalars_{};

  std::vector<Datum> row_data_;                  // of the rank's rows: x, r, q and the partial sum
  std::vector<Datum> p_data_;                    // by block row; those that are needed here
  std::array<std::vector<Datum>, 2> sums_data_;  // by rank
  Datum scalars_data_ = 0;
};

}  // namespace elbowroom::kernels
