#include "profile/ticks.hpp"

#include <time.h>

#include <cmath>
#include <limits>

#include "base/clock.hpp"
#include "base/clock_source.hpp"

namespace elbowroom::profile {

constinit thread_local Rate rate;

namespace {

constexpr std::uint64_t kLongEnough = 2'000'000;  // ns between the two comparisons that give the first rate
constexpr std::uint64_t kValid = 10'000'000;      // ns that a thread relies on a rate
constexpr int kTries = 5;

struct Pair {
  std::uint64_t ticks = 0;
  std::uint64_t ns = 0;
};

std::uint64_t kernel_now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

// Both clocks at one instant; the process may be interrupted between the two, so the quickest of some tries.
Pair compare() {
  Pair best;
  std::uint64_t width = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < kTries; ++i) {
    const std::uint64_t before = ticks();
    const std::uint64_t ns = kernel_now();
    const std::uint64_t after = ticks();
    if (after - before < width) {
      width = after - before;
      best = {before + width / 2, ns};
    }
  }
  return best;
}

// The first comparison of this process; without ticks where its counter cannot be trusted.
const Pair& first_pair() {
  static const Pair first = counter_refusal().empty() ? compare() : Pair{};
  return first;
}

}  // namespace

std::uint64_t compared_now() {
  const Pair& first = first_pair();
  if (first.ticks == 0) {
    return kernel_now();
  }
  Pair last = compare();
  while (last.ns - first.ns < kLongEnough) {
    last = compare();
  }
  const double ns_per_tick = static_cast<double>(last.ns - first.ns) / static_cast<double>(last.ticks - first.ticks);
  rate = {last.ticks, last.ns, static_cast<std::uint64_t>(std::ldexp(ns_per_tick, 32)),
          static_cast<std::uint64_t>(static_cast<double>(kValid) / ns_per_tick)};
  return kernel_now();
}

}  // namespace elbowroom::profile
