#include "gpu/management.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>

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

// The number of the first namespace of process ids is fixed (PROC_PID_INIT_INO of Linux); a container has another one.
bool sees_host_ids() {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/ns/pid", failed) == "pid:[4026531836]";
}

std::optional<std::vector<unsigned>> processes(const Library& library, void* device, bool own_context) {
  const auto call = ELBOW_FIND(library, nvmlDeviceGetComputeRunningProcesses_v3);
  unsigned count = kMostProcesses;
  ProcessInfo infos[kMostProcesses];
  if (call == nullptr || call(device, &count, infos) != 0) return std::nullopt;
  ListedProcesses listed{{}, static_cast<unsigned>(getpid()), sees_host_ids(), own_context};
  for (unsigned i = 0; i < count; ++i) listed.ids.push_back(infos[i].pid);
  return others_of(listed);
}

// nvmlClocksThrottleReason*, from the lowest bit on; the first one, an idle device, is no reason.
const char* const kReasons[] = {"",        "application_clocks", "power_cap",   "hardware_slowdown", "sync_boost",
                                "thermal", "hardware_thermal",   "power_brake", "display_clocks"};

std::optional<std::vector<std::string>> throttle(const Library& library, void* device) {
  const auto call = ELBOW_FIND(library, nvmlDeviceGetCurrentClocksThrottleReasons);
  unsigned long long bits = 0;
  if (call == nullptr || call(device, &bits) != 0) return std::nullopt;
  std::vector<std::string> names;
  for (std::size_t i = 1; i < std::size(kReasons); ++i) {
    if ((bits >> i & 1U) != 0) names.emplace_back(kReasons[i]);
  }
  return names;
}

}  // namespace

std::optional<std::vector<unsigned>> others_of(const ListedProcesses& listed) {
  if (!listed.own_context) return listed.ids;
  if (!listed.host_ids) return std::nullopt;
  std::vector<unsigned> others = listed.ids;
  std::erase(others, listed.own_id);
  return others;
}

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

ManagementFacts Management::facts(const std::string& pci, bool own_context) const {
  void* const handle = device(pci);
  ManagementFacts facts;
  char version[96] = "";
  const auto driver = ELBOW_FIND(library_, nvmlSystemGetDriverVersion);
  if (driver != nullptr && driver(version, sizeof(version)) == 0) facts.driver = version;
  facts.now = reading(pci);
  facts.link_generation_max = number(ELBOW_FIND(library_, nvmlDeviceGetMaxPcieLinkGeneration), handle);
  facts.link_width_max = number(ELBOW_FIND(library_, nvmlDeviceGetMaxPcieLinkWidth), handle);
  facts.sm_mhz_max = clock(ELBOW_FIND(library_, nvmlDeviceGetMaxClockInfo), handle, kSmClock);
  facts.memory_mhz = clock(ELBOW_FIND(library_, nvmlDeviceGetClockInfo), handle, kMemoryClock);
  facts.memory_mhz_max = clock(ELBOW_FIND(library_, nvmlDeviceGetMaxClockInfo), handle, kMemoryClock);
  facts.processes = processes(library_, handle, own_context);
  return facts;
}

DeviceReading Management::reading(const std::string& pci) const {
  void* const handle = device(pci);
  DeviceReading reading;
  reading.sm_mhz = clock(ELBOW_FIND(library_, nvmlDeviceGetClockInfo), handle, kSmClock);
  reading.link_generation = number(ELBOW_FIND(library_, nvmlDeviceGetCurrPcieLinkGeneration), handle);
  reading.link_width = number(ELBOW_FIND(library_, nvmlDeviceGetCurrPcieLinkWidth), handle);
  if (const auto power = number(ELBOW_FIND(library_, nvmlDeviceGetPowerUsage), handle)) reading.power_w = 1e-3 * *power;
  reading.throttle = throttle(library_, handle);
  return reading;
}

}  // namespace elbowroom::gpu
