// Random numbers: xorshift64* (S. Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled",
// ACM TOMS 42(4), 2016), since the standard's generators are many times slower and its distributions not the same
// everywhere.
#pragma once

#include <cstdint>

namespace elbowroom::simulate {

// A fixed scramble of 64 bits (the finaliser of SplitMix64).
inline std::uint64_t scrambled(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(scrambled(seed) | 1U) {}

  std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1DU;
  }

  // Evenly from 0 to `bound` - 1, bound < 2^32.
  std::uint64_t below(std::uint64_t bound) { return ((next() >> 32) * bound) >> 32; }

 private:
  std::uint64_t state_;
};

}  // namespace elbowroom::simulate
