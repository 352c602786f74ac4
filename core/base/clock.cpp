#include "base/clock.hpp"

#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/clock_source.hpp"
#include "base/host_clock.hpp"
#include "base/system_files.hpp"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace elbowroom {
namespace {

std::int64_t kernel_ns(clockid_t id) {
  timespec time{};
  clock_gettime(id, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

std::int64_t raw_ns() { return kernel_ns(CLOCK_MONOTONIC_RAW); }

#if defined(__x86_64__)
// The fence keeps the read from moving before the work it ends.
std::uint64_t counter() {
  _mm_lfence();
  return __rdtsc();
}
#elif defined(__aarch64__)
std::uint64_t counter() {
  std::uint64_t value = 0;
  asm volatile("isb; mrs %0, cntvct_el0" : "=r"(value)::"memory");
  return value;
}
#else
std::uint64_t counter() { return 0; }
#endif

Anchor anchor_after(const Anchor& start, std::int64_t ns) {
  while (raw_ns() - start.ns < ns) {
  }
  return take_anchor();
}

double ns_per_tick(const Anchor& from, const Anchor& to) {
  return static_cast<double>(to.ns - from.ns) / static_cast<double>(to.ticks - from.ticks);
}

// Two successive stretches of 20 ms must give the same rate within 100 ppm, five times what the anchors' error
// (some 20 ns) explains; a counter that does not is no clock, whatever it says of itself.
HostClock calibrate() {
  constexpr std::int64_t kStretch = 20'000'000;
  constexpr double kAgreement = 100e-6;
  HostClock clock;
  if (!counter_refusal().empty()) {
    return clock;
  }
  const Anchor first = take_anchor();
  const Anchor middle = anchor_after(first, kStretch);
  const Anchor last = anchor_after(middle, kStretch);
  if (middle.ticks <= first.ticks || last.ticks <= middle.ticks) {
    return clock;
  }
  if (std::abs(ns_per_tick(first, middle) / ns_per_tick(middle, last) - 1) > kAgreement) {
    return clock;
  }
  clock.counter = true;
  clock.start_ticks = first.ticks;
  clock.start_ns = first.ns;
  clock.scale = static_cast<std::uint64_t>(std::ldexp(ns_per_tick(first, last), 32) + 0.5);
  return clock;
}

double smallest_step() {
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
  for (int step = 0; step < 1000; ++step) {
    const std::int64_t before = now_ns();
    std::int64_t after = now_ns();
    while (after == before) {
      after = now_ns();
    }
    smallest = std::min(smallest, after - before);
  }
  return static_cast<double>(smallest);
}

double cost_of_call() {
  constexpr int kCalls = 256;
  std::vector<double> costs;
  for (int batch = 0; batch < 101; ++batch) {
    const std::int64_t before = now_ns();
    for (int call = 1; call < kCalls; ++call) {
      now_ns();
    }
    costs.push_back(static_cast<double>(now_ns() - before) / kCalls);
  }
  const auto middle = costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2);
  std::nth_element(costs.begin(), middle, costs.end());
  return *middle;
}

}  // namespace

Anchor take_anchor() {
  Anchor best{0, 0, std::numeric_limits<std::int64_t>::max()};
  for (int attempt = 0; attempt < 200; ++attempt) {
    const std::int64_t before = raw_ns();
    const std::uint64_t ticks = counter();
    const std::int64_t after = raw_ns();
    if (after - before < best.width) {
      best = {ticks, before + (after - before) / 2, after - before};
    }
  }
  return best;
}

std::string counter_refusal_in(std::string_view cpuinfo, std::string_view clocksource, std::string_view architecture) {
  if (architecture == "aarch64") {
    return clocksource == "arch_sys_counter" ? "" : "the kernel's clock source is not the architecture's counter";
  }
  if (architecture != "x86_64") {
    return "no counter is known for this architecture";
  }
  const auto values = parse_cpuinfo(cpuinfo);
  const auto entry = values.find("flags");
  const std::string flags = entry == values.end() ? "" : " " + entry->second + " ";
  for (const auto* flag : {"constant_tsc", "nonstop_tsc"}) {
    if (flags.find(std::string(" ") + flag + " ") == std::string::npos) {
      return std::string("the processor's time stamp counter is not invariant (no ") + flag + ")";
    }
  }
  if (clocksource != "tsc") {
    return "the kernel does not trust the time stamp counter (its clock source is " + std::string(clocksource) + ")";
  }
  return "";
}

std::string counter_refusal() {
#if defined(__x86_64__)
  constexpr auto kArchitecture = "x86_64";
#elif defined(__aarch64__)
  constexpr auto kArchitecture = "aarch64";
#else
  constexpr auto kArchitecture = "other";
#endif
  return counter_refusal_in(
      read_text("/proc/cpuinfo").value_or(""),
      read_text("/sys/devices/system/clocksource/clocksource0/current_clocksource").value_or("unknown"), kArchitecture);
}

std::int64_t HostClock::now() const {
  return counter ? at(elbowroom::counter()) : kernel_ns(steered ? CLOCK_MONOTONIC : CLOCK_MONOTONIC_RAW);
}

const HostClock& host_clock() {
  static const HostClock chosen = calibrate();
  return chosen;
}

std::int64_t now_ns() { return host_clock().now(); }

std::int64_t host_ticks() { return host_clock().counter ? static_cast<std::int64_t>(counter()) : raw_ns(); }

double host_tick_ns() { return host_clock().counter ? std::ldexp(static_cast<double>(host_clock().scale), -32) : 1; }

const ClockInfo& clock_info() {
  static const ClockInfo info{host_clock().counter ? "tsc" : "CLOCK_MONOTONIC_RAW", smallest_step(), cost_of_call()};
  return info;
}

double minimum_sample_ns() {
  const auto& info = clock_info();
  return std::max(20 * info.resolution_ns, 100 * info.call_ns);
}

}  // namespace elbowroom
