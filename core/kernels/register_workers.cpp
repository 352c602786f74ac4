#include <array>
#include <stdexcept>
#include <string>

#include "kernels/loops.hpp"
#include "kernels/workers.hpp"

namespace elbowroom {
namespace {

class Prime final : public Worker {
 public:
  void first_touch() override { tested_ = primes_ = 0; }
  std::uint64_t run(std::uint64_t items) override {
    primes_ += loops::count_primes(static_cast<std::uint32_t>(tested_ % loops::kPrimeCandidates), items);
    tested_ += items;
    return items;
  }
  bool validate() const override {
    const std::uint64_t rounds = tested_ / loops::kPrimeCandidates, rest = tested_ % loops::kPrimeCandidates;
    return primes_ == rounds * primes_below(loops::kPrimeCandidates) + primes_below(rest);
  }
  std::uint64_t items_per_sweep() const override { return 0; }

 private:
  // Primes among the first `count` candidates, by a sieve: another way than the kernel's.
  static std::uint64_t primes_below(std::uint64_t count) {
    std::array<bool, loops::kPrimeFirst + loops::kPrimeCandidates> composite{};
    for (std::size_t i = 2; i * i < composite.size(); ++i) {
      if (composite[i]) continue;
      for (std::size_t multiple = i * i; multiple < composite.size(); multiple += i) composite[multiple] = true;
    }
    std::uint64_t primes = 0;
    for (std::uint64_t i = 0; i < count; ++i) primes += !composite[loops::kPrimeFirst + i];
    return primes;
  }

  std::uint64_t tested_ = 0;
  std::uint64_t primes_ = 0;
};

// One item is one fused multiply-add on one double.
class Fma final : public Worker {
 public:
  explicit Fma(loops::Width width) : width_(width), doubles_(loops::fma_state(width)) {
    if (doubles_ == 0) {
      throw std::invalid_argument("vectors of " + std::to_string(static_cast<int>(width)) +
                                  " bits: the instruction set " + std::string(loops::target_name()) +
                                  " of this core has none; use fma for its widest");
    }
    first_touch();
  }
  void first_touch() override {
    for (std::size_t i = 0; i < state_.size(); ++i) state_[i] = initial(i);
    iterations_ = 0;
  }
  // The factor 1, unknown to the compiler, makes the state count its iterations: each of them can be checked.
  std::uint64_t run(std::uint64_t items) override {
    const std::uint64_t iterations = (items + doubles_ - 1) / doubles_;
    loops::fma(width_, state_.data(), iterations, 1.0, kAddend);
    iterations_ += iterations;
    return iterations * doubles_;
  }
  bool validate() const override {
    for (std::size_t i = 0; i < state_.size(); ++i) {
      const double steps = i < doubles_ ? static_cast<double>(iterations_) : 0.0;
      if (state_[i] != initial(i) + kAddend * steps) return false;
    }
    return true;
  }
  std::uint64_t items_per_sweep() const override { return 0; }

 private:
  // Exact for 2^52 iterations, which are weeks.
  static constexpr double kAddend = 1.0;
  static double initial(std::size_t i) { return static_cast<double>(i); }

  loops::Width width_;
  std::size_t doubles_;
  std::array<double, loops::kFmaStateMax> state_{};
  std::uint64_t iterations_ = 0;
};

}  // namespace

std::unique_ptr<Worker> make_prime() { return std::make_unique<Prime>(); }
std::unique_ptr<Worker> make_fma(loops::Width width) { return std::make_unique<Fma>(width); }

}  // namespace elbowroom
