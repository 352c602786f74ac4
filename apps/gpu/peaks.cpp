#include "peaks.hpp"

#include <fmt/format.h>

#include <map>

namespace elbowroom::gpu_bench {
namespace {

constexpr double kRounding = 1.01;
constexpr std::size_t kManyCaches = 8;  // buffers so large are hardly in the cache

// MB/s of a lane in each direction, by generation: line rate and code (PCI Express Base Specification).
const std::map<unsigned, double>& lanes() {
  static const std::map<unsigned, double> kLanes = {{1, 250},    {2, 500},    {3, 984.6},
                                                    {4, 1969.2}, {5, 3938.5}, {6, 7563}};
  return kLanes;
}

// Operations of an SM per clock, by compute capability: dense BF16 products with sums in FP32 (NVIDIA's white papers of
// the architectures: the peak, over SMs and boost clock).
const std::map<int, double>& operations() {
  static const std::map<int, double> kOperations = {{80, 2048}, {86, 512},   {87, 1024},  {89, 1024},
                                                    {90, 4096}, {100, 8192}, {103, 8192}, {120, 1024}};
  return kOperations;
}

template <class Key>
std::optional<double> value_of(const std::map<Key, double>& values, Key key) {
  const auto found = values.find(key);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> link_of(const gpu::ManagementFacts& management) {
  const auto lane = value_of(lanes(), management.link_generation_max.value_or(0));
  if (!lane || !management.link_width_max) return std::nullopt;
  return *lane * *management.link_width_max;
}

// Bytes are counted `times` of what the memory moves.
std::optional<double> memory_of(const Peaks& peaks, std::size_t bytes, double times) {
  if (!peaks.memory_mb_s || bytes < kManyCaches * peaks.cache) return std::nullopt;
  return *peaks.memory_mb_s * times;
}

}  // namespace

Peaks peaks_of(const gpu::DeviceFacts& device, const std::optional<gpu::ManagementFacts>& management) {
  Peaks peaks;
  peaks.cache = device.l2;
  // Two transfers in a clock; kHz and bits.
  if (device.memory_khz > 0 && device.bus_bits > 0) peaks.memory_mb_s = 2e-3 * device.memory_khz * device.bus_bits / 8;
  if (management && !device.coherent) peaks.link_mb_s = link_of(*management);
  const auto per_clock = value_of(operations(), device.capability);
  if (per_clock && device.clock_khz > 0) peaks.mflop_s = 1e-3 * device.clock_khz * device.sms * *per_clock;
  return peaks;
}

std::optional<double> peak_of(const Work& work, const Peaks& peaks) {
  switch (work.kind) {
    case Work::Kind::triad: return memory_of(peaks, work.bytes, 1);
    case Work::Kind::gemm: return peaks.mflop_s;
    case Work::Kind::sm_copy: return work.direction == "host" ? peaks.link_mb_s : memory_of(peaks, 2 * work.bytes, 0.5);
    case Work::Kind::copy: break;
    default: return std::nullopt;
  }
  if (work.direction == "d2d") return memory_of(peaks, 2 * work.bytes, 0.5);
  if (work.direction == "both" && peaks.link_mb_s) return 2 * *peaks.link_mb_s;
  return peaks.link_mb_s;
}

std::string above_peak(const Work& work, double rate, const std::string& unit, const Peaks& peaks) {
  const auto peak = peak_of(work, peaks);
  if (!peak || rate <= kRounding * *peak) return "";
  return fmt::format("{:.6g} {} were measured, and the device's peak is {:.6g} {}", rate, unit, *peak, unit);
}

nlohmann::json peaks_json(const Peaks& peaks) {
  const auto value = [](const std::optional<double>& number) { return number ? nlohmann::json(*number) : nullptr; };
  return {{"memory_mb_s", value(peaks.memory_mb_s)},
          {"link_mb_s", value(peaks.link_mb_s)},
          {"mflop_s", value(peaks.mflop_s)}};
}

}  // namespace elbowroom::gpu_bench
