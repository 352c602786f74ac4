// Entries of matrices and vectors.
#pragma once

#include <cstdint>

namespace elbowroom::program {

// In [-1, 1), the same for the same numbers: splitmix64 of seed, row and column.
inline double uniform(std::uint64_t seed, std::uint64_t row, std::uint64_t column) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15ULL + (row << 32U) + column;
  z += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  z ^= z >> 31U;
  return static_cast<double>(z >> 11U) * 0x1p-52 - 1;
}

}  // namespace elbowroom::program
