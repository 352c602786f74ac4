#include "gpu/management.hpp"

#include <unistd.h>

#include <cstdlib>

#include "gpu/declarations.hpp"

namespace elbowroom::gpu {
namespace {

constexpr unsigned kMostProcesses = 64;

const char* const kHint = "NVML comes with NVIDIA's driver (Debian: libnvidia-ml1)";

std::vector<std::string> paths() {
  const char* const given = std::getenv("ELBOWROOM_NVML");
  return {given != nullptr && *given != '\0' ? given : "libnvidia-ml.so.1"};
}

std::optional<unsigned> number(calls::nvmlDeviceGetCurrPcieLinkWidth* call, void* device) {
  unsigned value = 0;
  return call != nullptr && call(device, &value) == 0 ? std::optional(value) : std::nullopt;
}

std::optional<unsigned> clock(calls::nvmlDeviceGetClockInfo* call, void* device, int which) {
  unsigned value = 0;
  return call != nullptr && call(device, which, &value) == 0 ? std::optional(value) : std::nullopt;
}

std::optional<std::vector<unsigned>> processes(const Library& library, void* device) {
  const auto call = ELBOW_FIND(library, nvmlDeviceGetComputeRunningProcesses_v3);
  unsigned count = kMostProcesses;
  ProcessInfo infos[kMostProcesses];
  if (call == nullptr || call(device, &count, infos) != 0) return std::nullopt;
  std::vector<unsigned> ids;
  for (unsigned i = 0; i < count; ++i) {
    if (infos[i].pid != static_cast<unsigned>(getpid())) ids.push_back(infos[i].pid);
  }
  return ids;
}

}  // namespace

Management::Management() : library_(paths(), kHint) {
  const int code = ELBOW_NEED(library_, nvmlInit_v2)();
  if (code != 0) throw Unavailable("NVML does not start (error " + std::to_string(code) + ")", "see `nvidia-smi`");
}

Management::~Management() {
  if (const auto stop = ELBOW_FIND(library_, nvmlShutdown)) stop();
}

void* Management::device(const std::string& pci) const {
  void* device = nullptr;
  const auto find = ELBOW_FIND(library_, nvmlDeviceGetHandleByPciBusId_v2);
  if (find == nullptr || find(pci.c_str(), &device) != 0) {
    throw Unavailable("NVML does not know the device at " + pci, "see `nvidia-smi`");
  }
  return device;
}

ManagementFacts Management::facts(const std::string& pci) const {
  void* const handle = device(pci);
  ManagementFacts facts;
  char version[96] = "";
  const auto driver = ELBOW_FIND(library_, nvmlSystemGetDriverVersion);
  if (driver != nullptr && driver(version, sizeof(version)) == 0) facts.driver = version;
  facts.link_generation = number(ELBOW_FIND(library_, nvmlDeviceGetCurrPcieLinkGeneration), handle);
  facts.link_generation_max = number(ELBOW_FIND(library_, nvmlDeviceGetMaxPcieLinkGeneration), handle);
  facts.link_width = number(ELBOW_FIND(library_, nvmlDeviceGetCurrPcieLinkWidth), handle);
  facts.link_width_max = number(ELBOW_FIND(library_, nvmlDeviceGetMaxPcieLinkWidth), handle);
  facts.sm_mhz = clock(ELBOW_FIND(library_, nvmlDeviceGetClockInfo), handle, kSmClock);
  facts.sm_mhz_max = clock(ELBOW_FIND(library_, nvmlDeviceGetMaxClockInfo), handle, kSmClock);
  facts.memory_mhz = clock(ELBOW_FIND(library_, nvmlDeviceGetClockInfo), handle, kMemoryClock);
  facts.memory_mhz_max = clock(ELBOW_FIND(library_, nvmlDeviceGetMaxClockInfo), handle, kMemoryClock);
  facts.processes = processes(library_, handle);
  return facts;
}

std::optional<unsigned> Management::sm_mhz(const std::string& pci) const {
  return clock(ELBOW_FIND(library_, nvmlDeviceGetClockInfo), device(pci), kSmClock);
}

}  // namespace elbowroom::gpu
