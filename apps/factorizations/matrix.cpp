#include "factorizations/matrix.hpp"

#include <mpi.h>

#include <algorithm>
#include <cmath>

#include "common/uniform.hpp"

namespace elbowroom::factorizations {

using taskflow::Factorization;

double Layout::most_bytes() const {
  std::vector<double> bytes_of(static_cast<std::size_t>(problem.grid.size()));
  for (Data data = 0; data < problem.data(); ++data) {
    bytes_of[static_cast<std::size_t>(problem.owner(data))] += static_cast<double>(bytes(data));
  }
  return *std::max_element(bytes_of.begin(), bytes_of.end());
}

double Layout::entry(std::size_t row, std::size_t column) const {
  if (problem.factorization == Factorization::kQr) return program::uniform(seed, row, column);
  const double beside = program::uniform(seed, std::max(row, column), std::min(row, column));
  return row == column ? static_cast<double>(order()) : beside;
}

Matrix::Matrix(const Layout& layout, int rank) : layout_(layout), rank_(rank), tiles_(layout.problem.data()) {
  for (Data data = 0; data < tiles_.size(); ++data) {
    if (layout_.problem.owner(data) == rank_) tiles_[data] = std::make_unique<double[]>(layout_.doubles(data));
  }
}

namespace {

// Calls `visit` with row and column of each tile of the matrix.
template <typename Visit>
void each_tile(const taskflow::Problem& problem, const Visit& visit) {
  for (unsigned row = 0; row < problem.rows; ++row) {
    const unsigned last = problem.factorization == Factorization::kCholesky ? row + 1 : problem.columns;
    for (unsigned column = 0; column < last; ++column) visit(row, column);
  }
}

double norm(const std::vector<double>& vector) {
  double squares = 0;
  for (const double value : vector) squares += value * value;
  return std::sqrt(squares);
}

}  // namespace

void Matrix::fill() {
  const std::size_t block = layout_.block;
  each_tile(layout_.problem, [&](unsigned row, unsigned column) {
    double* tile = at(layout_.problem.tile(row, column));
    if (tile == nullptr) return;
    for (std::size_t j = 0; j < block; ++j) {
      for (std::size_t i = 0; i < block; ++i) *tile++ = layout_.entry(row * block + i, column * block + j);
    }
  });
}

// y += T x or T^T x, for the tile at `row`, `column`, or the triangle of it that is meant.
void Matrix::add_product(unsigned row, unsigned column, const double* tile, bool transposed, Part part,
                         const std::vector<double>& x, std::vector<double>& y) const {
  const std::size_t block = layout_.block;
  for (std::size_t j = 0; j < block; ++j) {
    const std::size_t first = part == Part::kLower ? j : 0;
    const std::size_t last = part == Part::kUpper ? j + 1 : block;
    for (std::size_t i = first; i < last; ++i) {
      const std::size_t from = transposed ? row * block + i : column * block + j;
      const std::size_t to = transposed ? column * block + j : row * block + i;
      y[to] += tile[j * block + i] * x[from];
    }
  }
}

// The matrix, or its factor L or R as it is in the tiles, times a vector. Collective.
std::vector<double> Matrix::multiply(const Job& job, bool factored, bool transposed,
                                     const std::vector<double>& x) const {
  const bool symmetric = layout_.problem.factorization == Factorization::kCholesky;
  std::vector<double> own(transposed ? layout_.columns() : layout_.order());
  std::vector<double> made(layout_.block * layout_.block);
  each_tile(layout_.problem, [&](unsigned row, unsigned column) {
    const double* tile = at(layout_.problem.tile(row, column));
    if (tile == nullptr) return;
    if (factored) {
      if (!symmetric && row > column) return;
      const Part part = row != column ? Part::kWhole : symmetric ? Part::kLower : Part::kUpper;
      add_product(row, column, tile, transposed, part, x, own);
      return;
    }
    for (std::size_t at = 0; at < made.size(); ++at) {
      made[at] = layout_.entry(row * layout_.block + at % layout_.block, column * layout_.block + at / layout_.block);
    }
    add_product(row, column, made.data(), transposed, Part::kWhole, x, own);
    if (symmetric && row != column) add_product(row, column, made.data(), !transposed, Part::kWhole, x, own);
  });
  std::vector<double> sum(own.size());
  MPI_Allreduce(own.data(), sum.data(), static_cast<int>(own.size()), MPI_DOUBLE, MPI_SUM, job.headers());
  return sum;
}

double Matrix::residual(const Job& job) const {
  std::vector<double> x(layout_.columns());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = program::uniform(layout_.seed + 1, i, 0);
  const bool symmetric = layout_.problem.factorization == Factorization::kCholesky;
  std::vector<double> expected = multiply(job, false, false, x);
  if (!symmetric) expected = multiply(job, false, true, expected);
  // L (L^T x), or R^T (R x): both start with what is upper triangular.
  const std::vector<double> found = multiply(job, true, !symmetric, multiply(job, true, symmetric, x));
  std::vector<double> apart(expected.size());
  std::transform(expected.begin(), expected.end(), found.begin(), apart.begin(), std::minus<>());
  return norm(apart) / norm(expected);
}

}  // namespace elbowroom::factorizations
