// Naive prime counting: integer arithmetic in registers, no memory (the CPU-bound kernel of Denis et al. 2021, section 3.2).
#pragma once

#include <cstdint>

namespace elbowroom::loops {

// Candidates are tested in a fixed interval, over and over, so that an item costs the same at any time.
inline constexpr std::uint32_t kPrimeFirst = 20000;
inline constexpr std::uint32_t kPrimeCandidates = 512;

// Primes among `count` candidates, the first of them `kPrimeFirst + start`, wrapping around the interval.
std::uint64_t count_primes(std::uint32_t start, std::uint64_t count);

}  // namespace elbowroom::loops
