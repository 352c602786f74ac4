#include "peaks.hpp"

#include <doctest/doctest.h>

using namespace elbowroom;
using namespace elbowroom::gpu_bench;

namespace {

// An H100 SXM as its driver describes it.
gpu::DeviceFacts h100() {
  gpu::DeviceFacts device;
  device.sms = 132;
  device.capability = 90;
  device.clock_khz = 1980000;
  device.memory_khz = 2619000;
  device.bus_bits = 5120;
  device.l2 = std::size_t{50} << 20U;
  return device;
}

gpu::ManagementFacts fifth_generation() {
  gpu::ManagementFacts facts;
  facts.link_generation_max = 5;
  facts.link_width_max = 16;
  return facts;
}

Work work(Work::Kind kind, const char* direction = "h2d", std::size_t bytes = std::size_t{1} << 30U) {
  Work one;
  one.kind = kind;
  one.direction = direction;
  one.bytes = bytes;
  return one;
}

}  // namespace

TEST_CASE("the peaks of an H100 are those of its data sheet, at its highest clock") {
  const Peaks peaks = peaks_of(h100(), fifth_generation());
  CHECK(*peak_of(work(Work::Kind::triad), peaks) == doctest::Approx(3352e3).epsilon(0.001));
  CHECK(*peak_of(work(Work::Kind::gemm), peaks) == doctest::Approx(1070.5e6).epsilon(0.001));
  CHECK(*peak_of(work(Work::Kind::copy), peaks) == doctest::Approx(63.0e3).epsilon(0.001));
  CHECK(*peak_of(work(Work::Kind::copy, "both"), peaks) == doctest::Approx(126.0e3).epsilon(0.001));
  CHECK(*peak_of(work(Work::Kind::copy, "d2d"), peaks) == doctest::Approx(1676e3).epsilon(0.001));
  CHECK(*peak_of(work(Work::Kind::sm_copy, "hbm"), peaks) == doctest::Approx(1676e3).epsilon(0.001));
  CHECK(*peak_of(work(Work::Kind::sm_copy, "host"), peaks) == doctest::Approx(63.0e3).epsilon(0.001));
}

TEST_CASE("what a device does not say, and buffers that its cache holds, have no peak") {
  CHECK_FALSE(peak_of(work(Work::Kind::triad), {}).has_value());
  CHECK_FALSE(peak_of(work(Work::Kind::copy), peaks_of(h100(), std::nullopt)).has_value());
  const Peaks peaks = peaks_of(h100(), fifth_generation());
  CHECK_FALSE(peak_of(work(Work::Kind::triad, "h2d", 1 << 20), peaks).has_value());
  CHECK_FALSE(peak_of(work(Work::Kind::chain), peaks).has_value());
  gpu::DeviceFacts coherent = h100();
  coherent.coherent = true;  // its link is no PCIe
  CHECK_FALSE(peak_of(work(Work::Kind::copy), peaks_of(coherent, fifth_generation())).has_value());
}
