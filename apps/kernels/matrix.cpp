#include "kernels/matrix.hpp"

#include <algorithm>
#include <set>

#include "kernels/dense.hpp"
#include "kernels/sparse.hpp"

namespace elbowroom::kernels {
namespace {

class DenseMatrix final : public Matrix {
 public:
  DenseMatrix(const Problem& problem, std::size_t first, std::size_t last, int node)
      : problem_(problem), blocks_(problem.block, problem.blocks(), first, last, node) {}

  void fill(std::size_t row) override {
    for (std::size_t column = 0; column < problem_.blocks(); ++column) {
      kernels::fill(problem_, definite_entry, row, column, blocks_.at(row, column));
    }
  }

  void multiply(const Part& part, const double* p, double* q) const override {
    const std::size_t column = part.columns.front();
    kernels::multiply(problem_.block, blocks_.at(part.row, column), p + column * problem_.block, q, part.first);
  }

  double residual(std::size_t row, const double* x, const double* b) const override {
    double squares = 0;
    for (std::size_t i = 0; i < problem_.block; ++i) {
      double rest = b[i];
      for (std::size_t column = 0; column < problem_.blocks(); ++column) {
        const double* a = blocks_.at(row, column) + i * problem_.block;
        for (std::size_t j = 0; j < problem_.block; ++j) {
          rest -= a[j] * x[column * problem_.block + j];
        }
      }
      squares += rest * rest;
    }
    return squares;
  }

  double entries(std::size_t) const override {
    return static_cast<double>(problem_.block) * static_cast<double>(problem_.order);
  }
  double row_bytes(std::size_t row) const override { return sizeof(double) * entries(row); }
  PageReport pages() const override { return blocks_.pages(); }

 private:
  Problem problem_;
  Blocks blocks_;
};

class SparseMatrix final : public Matrix {
 public:
  SparseMatrix(const Problem& problem, std::size_t first, std::size_t last, int node)
      : problem_(problem), rows_(problem, first, last, node) {}

  void fill(std::size_t row) override { rows_.fill(row); }
  void multiply(const Part& part, const double* p, double* q) const override { rows_.multiply(part.row, p, q); }
  double residual(std::size_t row, const double* x, const double* b) const override {
    return rows_.residual(row, x, b);
  }
  double entries(std::size_t row) const override { return static_cast<double>(rows_.entries(row)); }
  double row_bytes(std::size_t row) const override {
    return entries(row) * (sizeof(double) + sizeof(std::int32_t)) +
           static_cast<double>(problem_.block) * sizeof(std::int64_t);
  }
  PageReport pages() const override { return rows_.pages(); }

 private:
  Problem problem_;
  Sparse rows_;
};

// Own blocks, then those of the ranks behind, round the ring.
std::vector<Part> dense_parts(const Rows& rows, std::size_t rank) {
  std::vector<Part> parts;
  for (std::size_t step = 0; step < rows.ranks; ++step) {
    const std::size_t from = (rank + step) % rows.ranks;
    for (std::size_t row = rows.first(rank); row < rows.last(rank); ++row) {
      for (std::size_t column = rows.first(from); column < rows.last(from); ++column) {
        parts.push_back({row, {column}, step == 0 && column == rows.first(from)});
      }
    }
  }
  return parts;
}

// Interior planes, then those at the borders to other ranks.
std::vector<Part> sparse_parts(const Rows& rows, std::size_t rank) {
  std::vector<Part> inner;
  std::vector<Part> outer;
  const std::size_t first = rows.first(rank);
  const std::size_t last = rows.last(rank);
  for (std::size_t row = first; row < last; ++row) {
    Part part{row, {}, true};
    for (std::size_t column = row - (row > 0 ? 1U : 0U); column < std::min(row + 2, rows.blocks); ++column) {
      part.columns.push_back(column);
    }
    const bool own = part.columns.front() >= first && part.columns.back() < last;
    (own ? inner : outer).push_back(std::move(part));
  }
  inner.insert(inner.end(), outer.begin(), outer.end());
  return inner;
}

}  // namespace

std::unique_ptr<Matrix> make_matrix(const Problem& problem, std::size_t first, std::size_t last, int node) {
  if (problem.task == Task::cg_sparse) {
    return std::make_unique<SparseMatrix>(problem, first, last, node);
  }
  return std::make_unique<DenseMatrix>(problem, first, last, node);
}

std::vector<Part> parts_of(const Problem& problem, const Rows& rows, std::size_t rank) {
  return problem.task == Task::cg_sparse ? sparse_parts(rows, rank) : dense_parts(rows, rank);
}

std::vector<std::size_t> needed_by(const Problem& problem, const Rows& rows, std::size_t rank) {
  std::set<std::size_t> needed;
  for (const Part& part : parts_of(problem, rows, rank)) {
    for (const std::size_t column : part.columns) {
      if (column < rows.first(rank) || column >= rows.last(rank)) {
        needed.insert(column);
      }
    }
  }
  return {needed.begin(), needed.end()};
}

}  // namespace elbowroom::kernels
