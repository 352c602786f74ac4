#include "kernels/gemm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace elbowroom::kernels {
namespace {

constexpr double kBlocksTouched = 4;  // by a task: those of A and B, and C twice

using Rounding = std::numeric_limits<double>;

// Rows of these blocks times a vector, each row's sum in the order of its columns; with `magnitude` of absolute values.
std::vector<double> times(const Problem& problem, const Blocks& blocks, std::size_t first, std::size_t last,
                          const std::vector<double>& vector, bool magnitude) {
  std::vector<double> product((last - first) * problem.block);
  for (std::size_t row = first; row < last; ++row) {
    for (std::size_t column = 0; column < problem.blocks(); ++column) {
      const double* entry = blocks.at(row, column);
      for (std::size_t i = 0; i < problem.block; ++i) {
        double& sum = product[(row - first) * problem.block + i];
        for (std::size_t j = 0; j < problem.block; ++j) {
          const double value = *entry++ * vector[column * problem.block + j];
          sum += magnitude ? std::abs(value) : value;
        }
      }
    }
  }
  return product;
}

}  // namespace

Gemm::Gemm(const Problem& problem, const Rows& rows, std::size_t rank, int comp_node, int comm_node, Engine& engine)
    : problem_(problem),
      rows_(rows),
      rank_(rank),
      first_(rows.first(rank)),
      last_(rows.last(rank)),
      engine_(engine),
      steps_(turns(rows)),
      a_(problem.block, rows.blocks, first_, last_, comp_node),
      b_(problem.block, rows.blocks, first_, last_, comm_node),
      c_(problem.block, rows.blocks, first_, last_, comp_node),
      buffers_(problem.block, rows.blocks, 0, rows.blocks - (last_ - first_), comm_node) {
  for (const std::size_t row : steps_) {
    places_.push_back(row < first_ ? row : row - (last_ - first_));
  }
  const std::size_t size = problem.block * problem.block;
  for (std::size_t row = first_; row < last_; ++row) {
    for (std::size_t column = 0; column < rows.blocks; ++column) {
      b_data_.push_back(engine_.datum({b_.at(row, column), size}));
      c_data_.push_back(engine_.datum({c_.at(row, column), size}));
    }
  }
  for (std::size_t buffer = 0; buffer < rows.blocks - (last_ - first_); ++buffer) {
    for (std::size_t column = 0; column < rows.blocks; ++column) {
      buffer_data_.push_back(engine_.datum({buffers_.at(buffer, column), size}));
    }
  }
}

void Gemm::fill() {
  for (std::size_t row = first_; row < last_; ++row) {
    for (std::size_t column = 0; column < rows_.blocks; ++column) {
      const std::size_t at = (row - first_) * rows_.blocks + column;
      engine_.task(Kind::vector, {{b_data_[at], true}, {c_data_[at], true}}, [this, row, column] {
        kernels::fill(problem_, left_entry, row, column, a_.at(row, column));
        kernels::fill(problem_, right_entry, row, column, b_.at(row, column));
        std::fill_n(c_.at(row, column), c_.size(), 0);
      });
    }
  }
  // So that a run without messages has numbers to compute with.
  for (std::size_t i = 0; i < buffer_data_.size(); ++i) {
    engine_.task(Kind::vector, {{buffer_data_[i], true}}, [this, i] {
      kernels::fill(problem_, right_entry, i / rows_.blocks, i % rows_.blocks,
                    buffers_.at(i / rows_.blocks, i % rows_.blocks));
    });
  }
  engine_.wait();
}

void Gemm::pass_on(std::size_t step) {
  const std::size_t row = steps_[step];
  for (std::size_t column = 0; column < rows_.blocks; ++column) {
    const std::size_t tag = row * rows_.blocks + column;
    if (!owns(row)) {
      engine_.receive(buffer_data_[places_[step] * rows_.blocks + column], static_cast<int>(rows_.owner(row)), tag);
      continue;
    }
    for (std::size_t other = 1; other < rows_.ranks; ++other) {
      engine_.send(b_data_[(row - first_) * rows_.blocks + column], static_cast<int>((rank_ + other) % rows_.ranks),
                   tag, true);
    }
  }
}

void Gemm::multiply(std::size_t step) {
  const std::size_t k = steps_[step];
  const std::size_t buffer = places_[step];
  for (std::size_t row = first_; row < last_; ++row) {
    for (std::size_t column = 0; column < rows_.blocks; ++column) {
      const Datum from =
          owns(k) ? b_data_[(k - first_) * rows_.blocks + column] : buffer_data_[buffer * rows_.blocks + column];
      const double* b = owns(k) ? b_.at(k, column) : buffers_.at(buffer, column);
      engine_.task(Kind::product, {{c_data_[(row - first_) * rows_.blocks + column], true}, {from, false}},
                   [this, step, row, column, k, b] {
                     multiply_blocks(problem_.block, a_.at(row, k), b, c_.at(row, column), step == 0);
                   });
    }
  }
}

Outcome Gemm::run(std::size_t iterations) {
  for (std::size_t done = 0; done < iterations; ++done) {
    pass_on(0);
    for (std::size_t step = 0; step < steps_.size(); ++step) {
      if (step + 1 < steps_.size()) {
        pass_on(step + 1);
      }
      multiply(step);
    }
    engine_.wait();
  }
  return {iterations, ""};
}

// By a vector of signs (Freivalds 1977): a wrong entry of C is missed only when others of its row make up for it.
Checked Gemm::check(const Job& job) const {
  std::vector<double> z(problem_.order);
  for (std::size_t i = 0; i < z.size(); ++i) {
    z[i] = sign(problem_, i);
  }
  const std::vector<double> right = whole(job, rows_, problem_.block, times(problem_, b_, first_, last_, z, false));
  const std::vector<double> size = whole(job, rows_, problem_.block, times(problem_, b_, first_, last_, z, true));
  const std::vector<double> exact = times(problem_, a_, first_, last_, right, false);
  const std::vector<double> bound = times(problem_, a_, first_, last_, size, true);
  const std::vector<double> result = times(problem_, c_, first_, last_, z, false);
  Checked checked;
  double rest = 0;
  double norm = 0;
  double checksum = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double off = std::abs(result[i] - exact[i]);
    // Both ways round at most 2 order times on the way to a sum of products of magnitude `bound`.
    const double most = 4 * static_cast<double>(problem_.order) * Rounding::epsilon() * bound[i];
    checked.residual = std::max(checked.residual, off / std::max(most, Rounding::min()));
    rest += off * off;
    norm += exact[i] * exact[i];
    checksum += result[i] * z[first_ * problem_.block + i];
  }
  checked.checksum = summed(job, checksum);
  checked.residual = largest(job, checked.residual);
  checked.error = std::sqrt(summed(job, rest) / summed(job, norm));
  checked.holds = checked.residual <= 1;
  return checked;
}

void Gemm::plain(std::size_t thread, std::size_t threads) {
  for (std::size_t step = 0; step < steps_.size(); ++step) {
    const std::size_t k = steps_[step];
    std::size_t block = 0;
    for (std::size_t row = first_; row < last_; ++row) {
      for (std::size_t column = 0; column < rows_.blocks; ++column) {
        const double* b = owns(k) ? b_.at(k, column) : buffers_.at(places_[step], column);
        if (block++ % threads == thread) {
          multiply_blocks(problem_.block, a_.at(row, k), b, c_.at(row, column), step == 0);
        }
      }
    }
  }
}

Counts Gemm::counts(std::size_t iterations) const {
  const auto tasks = static_cast<double>((last_ - first_) * rows_.blocks * rows_.blocks * iterations);
  const auto block = static_cast<double>(problem_.block);
  Counts counts;
  counts.product_flops = tasks * 2 * block * block * block;
  counts.bytes = tasks * kBlocksTouched * block * block * sizeof(double);
  return counts;
}

std::vector<double> Gemm::result() const {
  std::vector<double> all;
  for (std::size_t row = first_; row < last_; ++row) {
    for (std::size_t i = 0; i < problem_.block; ++i) {
      for (std::size_t column = 0; column < rows_.blocks; ++column) {
        const double* entry = c_.at(row, column) + i * problem_.block;
        all.insert(all.end(), entry, entry + problem_.block);
      }
    }
  }
  return all;
}

std::vector<PageReport> Gemm::comp_pages() const { return {a_.pages(), c_.pages()}; }

std::vector<PageReport> Gemm::comm_pages() const { return {b_.pages(), buffers_.pages()}; }

}  // namespace elbowroom::kernels
