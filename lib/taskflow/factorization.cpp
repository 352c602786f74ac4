#include "factorization.hpp"

#include <algorithm>

namespace elbowroom::taskflow {

const char* name_of(Step step) {
  constexpr std::array<const char*, kSteps> kNames = {"potrf", "trsm",  "syrk",  "gemm",
                                                      "geqrt", "ormqr", "tpqrt", "tpmqrt"};
  return kNames[static_cast<std::size_t>(step)];
}

Data Problem::tile(unsigned row, unsigned column) const {
  return factorization == Factorization::kCholesky ? row * (row + 1) / 2 + column : row * columns + column;
}

Data Problem::factor(unsigned row, unsigned step) const {
  return rows * columns + row * std::min(rows, columns) + step;
}

std::size_t Problem::data() const {
  return factorization == Factorization::kCholesky ? tile(rows, 0) : factor(rows, 0);
}

bool Problem::is_factor(Data data) const { return factorization == Factorization::kQr && data >= rows * columns; }

int Problem::owner(Data data) const {
  if (factorization == Factorization::kCholesky) {
    unsigned row = 0;
    while (tile(row + 1, 0) <= data) ++row;
    return grid.owner(row, data - tile(row, 0));
  }
  const unsigned width = is_factor(data) ? std::min(rows, columns) : columns;
  const unsigned place = is_factor(data) ? data - rows * columns : data;
  return grid.owner(place / width, place % width);
}

namespace {

class Sequence {
 public:
  Sequence(const Problem& problem, const std::function<void(const Call&)>& submit)
      : problem_(problem), submit_(submit) {}

  void cholesky() {
    for (unsigned k = 0; k < problem_.rows; ++k) {
      call(Step::kPotrf, k, k, k, {{tile(k, k), Mode::kReadWrite}});
      for (unsigned m = k + 1; m < problem_.rows; ++m) {
        call(Step::kTrsm, m, k, k, {{tile(k, k), Mode::kRead}, {tile(m, k), Mode::kReadWrite}});
      }
      for (unsigned m = k + 1; m < problem_.rows; ++m) {
        call(Step::kSyrk, m, m, k, {{tile(m, k), Mode::kRead}, {tile(m, m), Mode::kReadWrite}});
        for (unsigned n = k + 1; n < m; ++n) {
          call(Step::kGemm, m, n, k,
               {{tile(m, k), Mode::kRead}, {tile(n, k), Mode::kRead}, {tile(m, n), Mode::kReadWrite}});
        }
      }
    }
  }

  void qr() {
    for (unsigned k = 0; k < std::min(problem_.rows, problem_.columns); ++k) {
      call(Step::kGeqrt, k, k, k, {{tile(k, k), Mode::kReadWrite}, {problem_.factor(k, k), Mode::kWrite}});
      for (unsigned n = k + 1; n < problem_.columns; ++n) {
        call(Step::kOrmqr, k, n, k,
             {{tile(k, k), Mode::kRead}, {problem_.factor(k, k), Mode::kRead}, {tile(k, n), Mode::kReadWrite}});
      }
      for (unsigned m = k + 1; m < problem_.rows; ++m) {
        call(Step::kTpqrt, m, k, k,
             {{tile(k, k), Mode::kReadWrite}, {tile(m, k), Mode::kReadWrite}, {problem_.factor(m, k), Mode::kWrite}});
        for (unsigned n = k + 1; n < problem_.columns; ++n) {
          call(Step::kTpmqrt, m, n, k,
               {{tile(m, k), Mode::kRead},
                {problem_.factor(m, k), Mode::kRead},
                {tile(k, n), Mode::kReadWrite},
                {tile(m, n), Mode::kReadWrite}});
        }
      }
    }
  }

 private:
  Data tile(unsigned row, unsigned column) const { return problem_.tile(row, column); }

  // Tasks run where the last tile that they write is.
  void call(Step step, unsigned row, unsigned column, unsigned round, std::initializer_list<Use> uses) {
    Call call;
    call.step = step;
    call.row = row;
    call.column = column;
    call.round = round;
    std::copy(uses.begin(), uses.end(), call.uses.begin());
    call.count = uses.size();
    call.rank = problem_.grid.owner(row, column);
    if (problem_.priorities && problem_.factorization == Factorization::kCholesky) {
      call.priority = static_cast<int>(4 * problem_.rows - 2 * round - row - column);
    }
    submit_(call);
  }

  const Problem& problem_;
  const std::function<void(const Call&)>& submit_;
};

}  // namespace

void enumerate(const Problem& problem, const std::function<void(const Call&)>& submit) {
  Sequence sequence(problem, submit);
  problem.factorization == Factorization::kCholesky ? sequence.cholesky() : sequence.qr();
}

}  // namespace elbowroom::taskflow
