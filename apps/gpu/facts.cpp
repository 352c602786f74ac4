#include "facts.hpp"

#include <optional>

#include "gpu/compiler.hpp"
#include "gpu/gemm.hpp"
#include "gpu/management.hpp"
#include "kernels.hpp"
#include "peaks.hpp"

namespace elbowroom::gpu_bench {
namespace {

using nlohmann::json;

json value(const std::optional<unsigned>& number) { return number ? json(*number) : json(); }

template <class Action>
json attempt(const Action& action) {
  try {
    return action();
  } catch (const gpu::Unavailable& error) {
    return unknown(error.what(), error.hint());
  } catch (const std::exception& error) {
    return unknown(error.what(), "see `nvidia-smi`");
  }
}

json device_json(const gpu::DeviceFacts& device) {
  return {{"name", device.name},
          {"pci", device.pci},
          {"sms", device.sms},
          {"capability", device.capability},
          {"exclusive", device.compute_mode == 3},
          {"prohibited", device.compute_mode == 2},
          {"memory", device.memory},
          {"node", device.node < 0 ? json() : json(device.node)}};
}

json management_json(const gpu::ManagementFacts& facts) {
  return {{"driver", facts.driver},
          {"link",
           {{"generation", value(facts.now.link_generation)},
            {"generation_max", value(facts.link_generation_max)},
            {"width", value(facts.now.link_width)},
            {"width_max", value(facts.link_width_max)}}},
          {"clocks_mhz",
           {{"sm", value(facts.now.sm_mhz)},
            {"sm_max", value(facts.sm_mhz_max)},
            {"memory", value(facts.memory_mhz)},
            {"memory_max", value(facts.memory_mhz_max)}}},
          {"processes", facts.processes ? json(*facts.processes) : json()}};
}

// Whether this process has a context on the device; a driver that does not know is as one that has.
bool has_context(const gpu::Driver& driver, int number) {
  gpu::DeviceNumber device = 0;
  unsigned flags = 0;
  int active = 1;
  if (driver.cuDevicePrimaryCtxGetState != nullptr && driver.cuDeviceGet(&device, number) == gpu::kSuccess) {
    driver.cuDevicePrimaryCtxGetState(device, &flags, &active);
  }
  return active != 0;
}

json compiler(const std::vector<std::string>& libraries, int capability) {
  const gpu::Compiler nvrtc(libraries);
  nvrtc.compile(kKernelSource, capability);
  return {{"version", nvrtc.version()}, {"path", nvrtc.path()}};
}

}  // namespace

json reading_json(const gpu::DeviceReading& reading) {
  return {{"sm_mhz", value(reading.sm_mhz)},
          {"link", {{"generation", value(reading.link_generation)}, {"width", value(reading.link_width)}}},
          {"power_w", reading.power_w ? json(*reading.power_w) : json()},
          {"throttle", reading.throttle ? json(*reading.throttle) : json()}};
}

json unknown(const std::string& reason, const std::string& hint) { return {{"unknown", reason}, {"hint", hint}}; }

json facts(int device, const std::vector<std::string>& libraries) {
  return attempt([&]() -> json {
    const gpu::Driver driver;
    const gpu::DeviceFacts found = gpu::device_facts(driver, device);
    std::optional<gpu::ManagementFacts> managed;
    const json management = attempt([&] {
      managed = gpu::Management().facts(found.pci, has_context(driver, device));
      return management_json(*managed);
    });
    return {{"cuda", gpu::version_text(driver.version())},
            {"devices", driver.devices()},
            {"device", device_json(found)},
            {"stand_in", found.is_stand_in()},
            {"connections", gpu::connections()},
            {"graphs", driver.has_graphs()},
            {"peaks", peaks_json(peaks_of(found, managed))},
            {"batch_copies", driver.cuMemcpyBatchAsync != nullptr},
            {"management", management},
            {"compiler", attempt([&] { return compiler(libraries, found.capability); })},
            {"gemm", attempt([&]() -> json {
               return {{"path", gpu::BlasLibrary::find(libraries)}};
             })}};
  });
}

}  // namespace elbowroom::gpu_bench
