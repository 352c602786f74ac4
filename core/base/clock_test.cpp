#include "base/clock.hpp"

#include <doctest/doctest.h>
#include <time.h>

#include <cmath>

#include "base/clock_source.hpp"
#include "base/host_clock.hpp"

using namespace elbowroom;

namespace {

std::int64_t raw_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

TEST_CASE("the clock never goes back") {
  std::int64_t last = now_ns();
  for (int read = 0; read < 100000; ++read) {
    const std::int64_t now = now_ns();
    REQUIRE(now >= last);
    last = now;
  }
}

TEST_CASE("the clock advances as CLOCK_MONOTONIC_RAW does") {
  // Each read of ours lies between two of the other, so the bound needs no quiet machine.
  const std::int64_t low_first = raw_ns();
  const std::int64_t first = now_ns();
  const std::int64_t high_first = raw_ns();
  while (raw_ns() - high_first < 50'000'000) {
  }
  const std::int64_t low_last = raw_ns();
  const std::int64_t last = now_ns();
  const std::int64_t high_last = raw_ns();
  const double slack = 1000 + 200e-6 * static_cast<double>(high_last - low_first);  // ns; 200 ppm of the stretch
  CHECK(static_cast<double>(last - first) >= static_cast<double>(low_last - high_first) - slack);
  CHECK(static_cast<double>(last - first) <= static_cast<double>(high_last - low_first) + slack);
}

TEST_CASE("the clock says what it is and what it costs") {
  const auto& info = clock_info();
  CHECK((info.source == "tsc" || info.source == "CLOCK_MONOTONIC_RAW"));
  CHECK(info.resolution_ns >= 1);
  CHECK(info.call_ns > 0);
  CHECK(minimum_sample_ns() >= 20 * info.resolution_ns);
  CHECK(minimum_sample_ns() >= 100 * info.call_ns);
}

TEST_CASE("the time stamp counter is taken only when invariant and trusted by the kernel") {
  const auto* good = "flags\t: fpu tsc constant_tsc nonstop_tsc\n";
  CHECK(counter_refusal_in(good, "tsc", "x86_64").empty());
  CHECK(counter_refusal_in(good, "kvm-clock", "x86_64").find("kvm-clock") != std::string::npos);
  CHECK(counter_refusal_in("flags\t: fpu tsc constant_tsc\n", "tsc", "x86_64").find("nonstop_tsc") !=
        std::string::npos);
  CHECK(counter_refusal_in("flags\t: fpu tsc not_constant_tsc nonstop_tsc\n", "tsc", "x86_64").find("constant_tsc") !=
        std::string::npos);
  CHECK_FALSE(counter_refusal_in("", "tsc", "x86_64").empty());
  CHECK(counter_refusal_in("", "arch_sys_counter", "aarch64").empty());
  CHECK_FALSE(counter_refusal_in("", "jiffies", "aarch64").empty());
  CHECK_FALSE(counter_refusal_in("", "timebase", "ppc64le").empty());
}

TEST_CASE("a shared calibration gives the same times to both processes, before it was made, too") {
  const HostClock& clock = host_clock();
  const HostClock shared = clock;
  CHECK(shared.at(clock.start_ticks) == clock.start_ns);
  if (clock.counter) {
    CHECK(shared.at(clock.start_ticks - 1'000'000) < clock.start_ns);
    CHECK(shared.at(clock.start_ticks + 1'000'000) > clock.start_ns);
  }
  CHECK(std::abs(static_cast<double>(shared.now() - now_ns())) < 1e9);
}
