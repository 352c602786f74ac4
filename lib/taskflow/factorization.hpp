// Tiled factorizations as sequences of tasks: Cholesky's and QR's of the thesis (Swartvagher 2022, algorithms 1 and 2), on
// tiles that are distributed in two dimensions, block-cyclic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "graph.hpp"

namespace elbowroom::taskflow {

enum class Factorization { kCholesky, kQr };

enum class Step : std::uint8_t { kPotrf, kTrsm, kSyrk, kGemm, kGeqrt, kOrmqr, kTpqrt, kTpmqrt };
inline constexpr std::size_t kSteps = 8;
const char* name_of(Step step);

struct Grid {
  int rows = 1;  // of processes
  int columns = 1;

  int size() const { return rows * columns; }
  int owner(unsigned row, unsigned column) const {
    return static_cast<int>(row % static_cast<unsigned>(rows)) * columns +
           static_cast<int>(column % static_cast<unsigned>(columns));
  }
};

// Of a matrix of `rows` x `columns` tiles; Cholesky's is square, and has data for its lower half only.
struct Problem {
  Factorization factorization = Factorization::kCholesky;
  unsigned rows = 1;
  unsigned columns = 1;
  Grid grid;
  bool priorities = true;  // of Cholesky's tasks; QR's have none (thesis, section 4.4.3)

  std::size_t data() const;         // tiles, and the factors T of QR's
  bool is_factor(Data data) const;  // a T
  int owner(Data data) const;
  Data tile(unsigned row, unsigned column) const;
  Data factor(unsigned row, unsigned step) const;  // T of QR
};

struct Call {
  Step step = Step::kPotrf;
  unsigned row = 0;  // of the tile that it writes
  unsigned column = 0;
  unsigned round = 0;
  std::array<Use, 4> uses;
  std::size_t count = 0;  // of uses
  int priority = 0;
  int rank = 0;

  std::span<const Use> used() const { return {uses.data(), count}; }
};

// Calls `submit` with each task, in sequence.
void enumerate(const Problem& problem, const std::function<void(const Call&)>& submit);

}  // namespace elbowroom::taskflow
