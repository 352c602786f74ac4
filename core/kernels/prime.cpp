#include "kernels/loops.hpp"

namespace elbowroom::loops {

[[gnu::noinline]] std::uint64_t count_primes(std::uint32_t start, std::uint64_t count) {
  std::uint64_t primes = 0;
  std::uint32_t candidate = kPrimeFirst + start;
  for (; count > 0; --count) {
    std::uint32_t divisor = 2;
    while (divisor * divisor <= candidate && candidate % divisor != 0) ++divisor;
    primes += divisor * divisor > candidate;
    if (++candidate == kPrimeFirst + kPrimeCandidates) candidate = kPrimeFirst;
  }
  return primes;
}

}  // namespace elbowroom::loops
