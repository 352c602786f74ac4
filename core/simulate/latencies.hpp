// Latencies counted in bins of 1.6 % width: mean exact, quantiles to the bin.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "simulate/wheel.hpp"

namespace elbowroom::simulate {

class Latencies {
 public:
  void count(Time latency) {
    sum_ += latency;
    ++number_;
    ++bins_[bin(static_cast<std::uint64_t>(latency))];
  }

  std::uint64_t number() const { return number_; }
  double mean() const { return number_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(number_); }

  // The value below which that share of the latencies lies, in picoseconds; 0 without latencies.
  double quantile(double share) const {
    const double wanted = share * static_cast<double>(number_);
    double below = 0;
    for (std::size_t i = 0; i < bins_.size(); ++i) {
      const double here = bins_[i];
      if (here > 0 && below + here >= wanted) {
        const double low = lower(i);
        return low + (lower(i + 1) - low) * (wanted - below) / here;
      }
      below += here;
    }
    return 0.0;
  }

 private:
  static constexpr int kBits = 6;  // bins in a factor of two: 64
  static constexpr std::size_t kBins = (64 - kBits) << kBits;

  static std::size_t bin(std::uint64_t value) {
    const int width = std::bit_width(value | (1U << kBits));
    const int shift = width - kBits - 1;
    return (static_cast<std::size_t>(shift) << kBits) + static_cast<std::size_t>(value >> shift);
  }

  static double lower(std::size_t index) {
    if (index < (std::size_t{2} << kBits)) return static_cast<double>(index);
    const std::size_t shift = (index >> kBits) - 1;
    return static_cast<double>((index - (shift << kBits)) << shift);
  }

  std::array<std::uint32_t, kBins> bins_{};
  Time sum_ = 0;
  std::uint64_t number_ = 0;
};

}  // namespace elbowroom::simulate
