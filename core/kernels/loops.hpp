// The inner loops of the kernels, compiled once per instruction set; run-time dispatch picks one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace elbowroom::loops {

// Arrays hold a multiple of kGranule doubles and start at a multiple of 64 bytes, so that no loop has a remainder: 2 KiB
// is eight of the widest vectors there are (SVE, 2048 bits).
inline constexpr std::size_t kGranule = 256;

// a[i] = value, by non-temporal stores.
void memset_nt(double* a, std::size_t n, double value);
// Sum of a[i], which is exact, whatever the order, for the integers that the workers put there.
double load(const double* a, std::size_t n);
// c[i] = a[i].
void copy(double* c, const double* a, std::size_t n);
void copy_nt(double* c, const double* a, std::size_t n);
// c[i] = a[i] + s * b[i].
void triad(double* c, const double* a, const double* b, std::size_t n, double s);
void triad_nt(double* c, const double* a, const double* b, std::size_t n, double s);
// x = a[i]; cursor times: x = b[i] + s * x; c[i] = x. Each repetition needs the one before it.
void triad_cursor(double* c, const double* a, const double* b, std::size_t n, double s, int cursor);

// Width of a vector in the fma loop. `widest` is what the dispatched instruction set offers.
enum class Width { widest = 0, bits128 = 128, bits256 = 256, bits512 = 512 };

inline constexpr std::size_t kFmaStateMax = 20 * 32;  // doubles: chains times the lanes of the widest vector

// Doubles of state that the fma loop of this width works on (chains times lanes); 0 where the dispatched instruction set
// has no such width.
std::size_t fma_state(Width width);
// `iterations` times state[i] = state[i] * factor + addend on all fma_state(width) doubles, in registers.
void fma(Width width, double* state, std::size_t iterations, double factor, double addend);

const char* target_name();
std::size_t vector_bytes();

// Naive prime counting: integer arithmetic in registers, no memory (the CPU-bound kernel of Denis et al. 2021, section 3.2).
// Candidates are tested in a fixed interval, over and over, so that an item costs the same at any time.
inline constexpr std::uint32_t kPrimeFirst = 20000;
inline constexpr std::uint32_t kPrimeCandidates = 512;

// Primes among `count` candidates, the first of them `kPrimeFirst + start`, wrapping around the interval.
std::uint64_t count_primes(std::uint32_t start, std::uint64_t count);

}  // namespace elbowroom::loops
