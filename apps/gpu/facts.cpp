#include "facts.hpp"

#include <optional>

#include "gpu/compiler.hpp"
#include "gpu/gemm.hpp"
#include "gpu/management.hpp"
#include "kernels.hpp"

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

json management(const std::string& pci) {
  const gpu::Management nvml;
  const gpu::ManagementFacts facts = nvml.facts(pci);
  return {{"driver", facts.driver},
          {"link",
           {{"generation", value(facts.link_generation)},
            {"generation_max", value(facts.link_generation_max)},
            {"width", value(facts.link_width)},
            {"width_max", value(facts.link_width_max)}}},
          {"clocks_mhz",
           {{"sm", value(facts.sm_mhz)},
            {"sm_max", value(facts.sm_mhz_max)},
            {"memory", value(facts.memory_mhz)},
            {"memory_max", value(facts.memory_mhz_max)}}},
          {"processes", facts.processes ? json(*facts.processes) : json()}};
}

json compiler(const std::vector<std::string>& libraries, int capability) {
  const gpu::Compiler nvrtc(libraries);
  nvrtc.compile(kKernelSource, capability);
  return {{"version", nvrtc.version()}, {"path", nvrtc.path()}};
}

}  // namespace

json unknown(const std::string& reason, const std::string& hint) { return {{"unknown", reason}, {"hint", hint}}; }

json facts(int device, const std::vector<std::string>& libraries) {
  return attempt([&]() -> json {
    const gpu::Driver driver;
    const gpu::DeviceFacts found = gpu::device_facts(driver, device);
    return {{"cuda", gpu::version_text(driver.version())},
            {"devices", driver.devices()},
            {"device", device_json(found)},
            {"stand_in", found.name == "stand-in"},
            {"batch_copies", driver.cuMemcpyBatchAsync != nullptr},
            {"management", attempt([&] { return management(found.pci); })},
            {"compiler", attempt([&] { return compiler(libraries, found.capability); })},
            {"gemm", attempt([&]() -> json {
               return {{"path", gpu::BlasLibrary::find(libraries)}};
             })}};
  });
}

}  // namespace elbowroom::gpu_bench
