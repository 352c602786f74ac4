// CLOCK_MONOTONIC by the processor's counter: half the cost of asking the kernel. Each thread compares both again after some
// milliseconds, so that times of all processes of a host stay within some 100 ns of its clock.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace elbowroom::profile {

#if defined(__x86_64__)
// Without a fence: some 10 ns of other instructions do not matter here.
inline std::uint64_t ticks() { return __rdtsc(); }
#elif defined(__aarch64__)
inline std::uint64_t ticks() {
  std::uint64_t value = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
}
#else
inline std::uint64_t ticks() { return 0; }
#endif

// What a thread knows of both clocks: at `ticks` it was `ns`, and until `until` ticks go on by `scale` / 2^32 ns.
struct Rate {
  std::uint64_t ticks = 0;
  std::uint64_t ns = 0;
  std::uint64_t scale = 0;
  std::uint64_t valid = 0;  // ticks; 0: compare the clocks first
};

extern constinit thread_local Rate rate __attribute__((tls_model("initial-exec")));

// Compares the clocks, and gives the time.
std::uint64_t compared_now();

inline std::uint64_t now() {
  const std::uint64_t passed = ticks() - rate.ticks;
  if (passed >= rate.valid) [[unlikely]] {
    return compared_now();
  }
  __extension__ using Wide = unsigned __int128;
  return rate.ns + static_cast<std::uint64_t>((static_cast<Wide>(passed) * rate.scale) >> 32);
}

}  // namespace elbowroom::profile
