#include "broadcast/products.hpp"

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/blas.hpp"

namespace elbowroom::forwarding {
namespace {

constexpr std::size_t kBlock = 128;  // rows: a product of blocks is a tenth of a millisecond
constexpr std::size_t kMatrices = 3;
constexpr double kTolerance = 1e-10;  // of a sum of so many products of numbers below 1

// Numbers in [-1, 1) without a pattern that blocks repeat.
double entry(std::uint64_t matrix, std::uint64_t index) {
  return static_cast<double>((index + 1) * (2 * matrix + 1) * 2654435761u % 2048) / 1024 - 1;
}

class Products final : public Worker {
 public:
  Products(double* memory, std::size_t blocks)
      : blocks_(blocks), a_(memory), b_(a_ + blocks * blocks * kSize), c_(b_ + blocks * blocks * kSize) {}

  void first_touch() override {
    for (std::size_t i = 0; i < blocks_ * blocks_ * kSize; ++i) {
      a_[i] = entry(0, i);
      b_[i] = entry(1, i);
      c_[i] = 0;
    }
    done_ = 0;
  }

  std::uint64_t run(std::uint64_t items) override {
    for (std::uint64_t i = 0; i < items; ++i, ++done_) {
      const std::size_t inner = done_ % blocks_;
      const std::size_t column = done_ / blocks_ % blocks_;
      const std::size_t row = done_ / blocks_ / blocks_ % blocks_;
      program::multiply_blocks(kBlock, at(a_, row, inner), at(b_, inner, column), at(c_, row, column), inner == 0);
    }
    return items;
  }

  // The last block of C that is complete, multiplied by a vector, is A times (B times the vector).
  bool validate() const override {
    if (done_ < blocks_) {
      return true;
    }
    const std::uint64_t last = done_ / blocks_ - 1;
    const std::size_t row = last / blocks_ % blocks_;
    const std::size_t column = last % blocks_;
    std::vector<double> vector(kBlock), product(kBlock), between(kBlock), expected(kBlock);
    for (std::size_t i = 0; i < kBlock; ++i) {
      vector[i] = entry(2, i);
    }
    program::multiply(kBlock, at(c_, row, column), vector.data(), product.data(), true);
    for (std::size_t inner = 0; inner < blocks_; ++inner) {
      program::multiply(kBlock, at(b_, inner, column), vector.data(), between.data(), true);
      program::multiply(kBlock, at(a_, row, inner), between.data(), expected.data(), inner == 0);
    }
    for (std::size_t i = 0; i < kBlock; ++i) {
      if (!(std::fabs(product[i] - expected[i]) <= kTolerance * static_cast<double>(kBlock * kBlock * blocks_))) {
        return false;
      }
    }
    return true;
  }

  std::uint64_t items_per_sweep() const override { return blocks_ * blocks_ * blocks_; }

 private:
  static constexpr std::size_t kSize = kBlock * kBlock;
  double* at(double* matrix, std::size_t row, std::size_t column) const {
    return matrix + (row * blocks_ + column) * kSize;
  }

  std::size_t blocks_;  // on a side
  double *a_, *b_, *c_;
  std::uint64_t done_ = 0;
};

}  // namespace

const KernelInfo kProducts = {.name = "gemm",
                              .description = "products of matrices by OpenBLAS",
                              .rate_unit = "Mflop/s",
                              .flops = 2.0 * kBlock * kBlock * kBlock,
                              .arrays = kMatrices};

std::unique_ptr<Worker> make_products(void* memory, std::size_t bytes) {
  constexpr std::size_t kLeast = kMatrices * kBlock * kBlock * sizeof(double);
  if (bytes < kLeast) {
    throw std::invalid_argument("gemm needs " + std::to_string(kLeast) + " bytes or more, for three blocks");
  }
  const auto blocks = static_cast<std::size_t>(std::sqrt(static_cast<double>(bytes / kLeast)));
  return std::make_unique<Products>(static_cast<double*>(memory), blocks);
}

}  // namespace elbowroom::forwarding
