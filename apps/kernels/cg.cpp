#include "kernels/cg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace elbowroom::kernels {
namespace {

constexpr std::size_t kPq = 0;
constexpr std::size_t kRr = 1;
constexpr double kVectorFlops = 10;           // of a row: two scalar products, three updates
constexpr double kVectorDoubles = 2 + 6 + 3;  // of a row, read and written: p q; x, r, p and q; r and p
constexpr double kExact =
    1e-8;  // of residual and error that are computed anew: the condition is below 30, rounding included

double dot(const double* one, const double* other, std::size_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < count; ++i) {
    sum += one[i] * other[i];
  }
  return sum;
}

}  // namespace

Cg::Cg(const Problem& problem, const Rows& rows, std::size_t rank, int comp_node, int comm_node, Engine& engine)
    : problem_(problem),
      rows_(rows),
      rank_(rank),
      first_(rows.first(rank)),
      last_(rows.last(rank)),
      engine_(engine),
      matrix_(make_matrix(problem, first_, last_, comp_node)),
      parts_(parts_of(problem, rows, rank)),
      state_(kVectors * (last_ - first_) * problem.block * sizeof(double), comp_node),
      search_(problem.order * sizeof(double), comm_node),
      partial_(last_ - first_),
      p_data_(rows.blocks) {
  for (std::size_t row = first_; row < last_; ++row) {
    row_data_.push_back(engine_.datum({own(kQ, row), problem.block}));
    p_data_[row] = engine_.datum({p(row), problem.block});
  }
  for (const std::size_t row : needed_by(problem, rows, rank)) {
    p_data_[row] = engine_.datum({p(row), problem.block});
  }
  for (std::size_t which : {kPq, kRr}) {
    sums_[which].resize(rows.blocks);
    for (std::size_t other = 0; other < rows.ranks; ++other) {
      sums_data_[which].push_back(
          engine_.datum({sums_[which].data() + rows.first(other), rows.last(other) - rows.first(other)}));
    }
  }
  scalars_data_ = engine_.datum({&scalars_.rr, sizeof scalars_ / sizeof(double)});
}

double* Cg::own(Vector vector, std::size_t row) const {
  const std::size_t rows = last_ - first_;
  return static_cast<double*>(state_.data()) +
         (static_cast<std::size_t>(vector) * rows + row - first_) * problem_.block;
}

// A task for each block row, which may change all that is the row's own.
void Cg::for_rows(const std::vector<Use>& uses, bool writes_search, const std::function<void(std::size_t)>& body) {
  for (std::size_t row = first_; row < last_; ++row) {
    std::vector<Use> all = uses;
    all.push_back({row_data_[row - first_], true});
    all.push_back({p_data_[row], writes_search});
    engine_.task(Kind::vector, all, [body, row] { body(row); });
  }
}

void Cg::fill() {
  for (std::size_t row = first_; row < last_; ++row) {
    engine_.task(Kind::vector, {{row_data_[row - first_], true}}, [this, row] { matrix_->fill(row); });
  }
  std::vector<std::size_t> rows = needed_by(problem_, rows_, rank_);
  for (std::size_t row = first_; row < last_; ++row) {
    rows.push_back(row);
  }
  for (const std::size_t row : rows) {
    engine_.task(Kind::vector, {{p_data_[row], true}}, [this, row] {
      for (std::size_t i = 0; i < problem_.block; ++i) {
        p(row)[i] = solution(row * problem_.block + i);
      }
    });
  }
  multiply();
  for_rows({}, false, [this](std::size_t row) { std::copy_n(own(kQ, row), problem_.block, own(kB, row)); });
  engine_.wait();
}

void Cg::begin() {
  for_rows({}, true, [this](std::size_t row) {
    const std::size_t count = problem_.block;
    std::fill_n(own(kX, row), count, 0);
    std::copy_n(own(kB, row), count, own(kR, row));
    std::copy_n(own(kB, row), count, p(row));
    partial_[row - first_] = dot(own(kR, row), own(kR, row), count);
  });
  share_sums(kRr);
  add_sums(kRr, [this](double sum) { scalars_.rr = sum; });
}

void Cg::exchange_search() {
  for (std::size_t step = 1; step < rows_.ranks; ++step) {
    const std::size_t to = (rank_ + rows_.ranks - step) % rows_.ranks;
    for (const std::size_t row : needed_by(problem_, rows_, to)) {
      if (rows_.owner(row) == rank_) {
        engine_.send(p_data_[row], static_cast<int>(to), row, true);
      }
    }
  }
  for (const std::size_t row : needed_by(problem_, rows_, rank_)) {
    engine_.receive(p_data_[row], static_cast<int>(rows_.owner(row)), row);
  }
}

void Cg::multiply() {
  for (const Part& part : parts_) {
    std::vector<Use> uses = {{row_data_[part.row - first_], true}};
    for (const std::size_t column : part.columns) {
      uses.push_back({p_data_[column], false});
    }
    engine_.task(Kind::product, uses, [this, &part] {
      matrix_->multiply(part, static_cast<const double*>(search_.data()), own(kQ, part.row));
    });
  }
}

// Each rank's partial sums go to all others.
void Cg::share_sums(std::size_t which) {
  std::vector<Use> uses = {{sums_data_[which][rank_], true}};
  for (const Datum row : row_data_) {
    uses.push_back({row, false});
  }
  engine_.task(Kind::vector, uses, [this, which] {
    std::copy(partial_.begin(), partial_.end(), sums_[which].begin() + static_cast<std::ptrdiff_t>(first_));
  });
  const std::size_t tag = rows_.blocks + which;
  for (std::size_t step = 1; step < rows_.ranks; ++step) {
    engine_.send(sums_data_[which][rank_], static_cast<int>((rank_ + step) % rows_.ranks), tag, false);
  }
  for (std::size_t other = 0; other < rows_.ranks; ++other) {
    if (other != rank_) {
      engine_.receive(sums_data_[which][other], static_cast<int>(other), tag);
    }
  }
}

// x += alpha p, r -= alpha q, and r r.
void Cg::update() {
  const std::size_t count = problem_.block;
  for_rows({{scalars_data_, false}}, false, [this, count](std::size_t row) {
    double* x = own(kX, row);
    double* r = own(kR, row);
    const double* q = own(kQ, row);
    const double* search = p(row);
    const double alpha = scalars_.alpha;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < count; ++i) {
      x[i] += alpha * search[i];
      r[i] -= alpha * q[i];
      sum += r[i] * r[i];
    }
    partial_[row - first_] = sum;
  });
  share_sums(kRr);
}

// Hands the sum of all rows to `next`, which may change the scalars.
void Cg::add_sums(std::size_t which, std::function<void(double)> next) {
  std::vector<Use> uses = {{scalars_data_, true}};
  for (const Datum datum : sums_data_[which]) {
    uses.push_back({datum, false});
  }
  engine_.task(Kind::vector, uses, [this, which, next = std::move(next)] {
    next(std::accumulate(sums_[which].begin(), sums_[which].end(), 0.0));
  });
}

// Where messages are missing, steps of length 0 keep the vectors as they are; they cost the same.
void Cg::iterate() {
  const bool exact = engine_.mode() == Mode::all;
  const std::size_t count = problem_.block;
  exchange_search();
  multiply();
  for_rows({}, false, [this, count](std::size_t row) { partial_[row - first_] = dot(p(row), own(kQ, row), count); });
  share_sums(kPq);
  add_sums(kPq, [this, exact](double sum) {
    scalars_.pq = sum;
    scalars_.alpha = exact ? scalars_.rr / scalars_.pq : 0;
  });
  update();
  add_sums(kRr, [this, exact](double sum) {
    const double before = std::exchange(scalars_.rr, sum);
    scalars_.beta = exact ? scalars_.rr / before : 0;
  });
  for_rows({{scalars_data_, false}}, true, [this, count](std::size_t row) {
    const double* r = own(kR, row);
    double* search = p(row);
    const double beta = scalars_.beta;
    for (std::size_t i = 0; i < count; ++i) {
      search[i] = r[i] + beta * search[i];
    }
  });
}

Outcome Cg::run(std::size_t iterations) {
  const bool exact = engine_.mode() == Mode::all;
  begin();
  engine_.wait();
  const double right = scalars_.rr;
  const auto relative = [&] { return std::sqrt(scalars_.rr / right); };
  for (std::size_t done = 0; done < iterations; ++done) {
    iterate();
    engine_.wait();
    if (exact && !(scalars_.pq > 0)) {
      return {done + 1, fmt::format("the matrix is not positive definite: p A p = {:.3g} in iteration {}", scalars_.pq,
                                    done + 1)};
    }
    if (exact && relative() <= kTolerance) {
      return {done + 1, ""};
    }
  }
  if (!exact) {
    return {iterations, ""};
  }
  return {iterations, fmt::format("did not converge in {} iterations: residual {:.3g} of {:g} wanted", iterations,
                                  relative(), kTolerance)};
}

Checked Cg::check(const Job& job) const {
  const std::vector<double> x = whole(job, rows_, problem_.block, result());
  double rest = 0;
  double right = 0;
  double error = 0;
  double exact = 0;
  double checksum = 0;
  for (std::size_t row = first_; row < last_; ++row) {
    rest += matrix_->residual(row, x.data(), own(kB, row));
    right += dot(own(kB, row), own(kB, row), problem_.block);
    for (std::size_t i = row * problem_.block; i < (row + 1) * problem_.block; ++i) {
      error += (x[i] - solution(i)) * (x[i] - solution(i));
      exact += solution(i) * solution(i);
      checksum += x[i] * sign(problem_, i);
    }
  }
  Checked checked;
  checked.residual = std::sqrt(summed(job, rest) / summed(job, right));
  checked.error = std::sqrt(summed(job, error) / summed(job, exact));
  checked.checksum = summed(job, checksum);
  checked.holds = checked.residual <= kExact && checked.error <= kExact;
  return checked;
}

void Cg::plain(std::size_t thread, std::size_t threads) {
  const auto* search = static_cast<const double*>(search_.data());
  for (const Part& part : parts_) {
    if ((part.row - first_) % threads == thread) {
      matrix_->multiply(part, search, own(kQ, part.row));
    }
  }
}

Counts Cg::counts(std::size_t iterations) const {
  const auto times = static_cast<double>(iterations);
  Counts counts;
  for (std::size_t row = first_; row < last_; ++row) {
    counts.product_flops += 2 * times * matrix_->entries(row);
    counts.bytes += times * matrix_->row_bytes(row);
  }
  for (const Part& part : parts_) {
    const double touched = static_cast<double>(part.columns.size()) + (part.first ? 1 : 2);
    counts.bytes += times * touched * static_cast<double>(problem_.block) * sizeof(double);
  }
  const auto rows = static_cast<double>((last_ - first_) * problem_.block);
  counts.vector_flops = times * kVectorFlops * rows;
  counts.bytes += times * kVectorDoubles * rows * sizeof(double);
  return counts;
}

std::vector<double> Cg::result() const {
  const double* x = own(kX, first_);
  return {x, x + (last_ - first_) * problem_.block};
}

std::vector<PageReport> Cg::comp_pages() const { return {matrix_->pages(), state_.verify(state_.size())}; }

std::vector<PageReport> Cg::comm_pages() const { return {search_.verify(search_.size())}; }

}  // namespace elbowroom::kernels
