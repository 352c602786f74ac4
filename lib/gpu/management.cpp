#include "gpu/management.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace elbowroom::gpu {
namespace {

constexpr int kSmClock = 1;      // nvmlClockType_t
constexpr int kMemoryClock = 2;  // nvmlClockType_t
constexpr unsigned kMostProcesses = 64;

struct ProcessInfo {  // nvmlProcessInfo_t
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};

const char* const kHint = "NVML comes with NVIDIA's driver (Debian: libnvidia-ml1)";

std::vector<std::string> paths() {
  const char* const given = std::getenv("ELBOWROOM_NVML");
  return {given != nullptr && *given != '\0' ? given : "libnvidia-ml.so.1"};
}

template <class Call>
Call* symbol(const Library& library, const char* name) {
  return reinterpret_cast<Call*>(reinterpret_cast<std::uintptr_t>(library.find(name)));
}

std::optional<unsigned> number(const Library& library, const char* name, void* device) {
  unsigned value = 0;
  const auto call = symbol<int(void*, unsigned*)>(library, name);
  return call != nullptr && call(device, &value) == 0 ? std::optional(value) : std::nullopt;
}

std::optional<unsigned> clock(const Library& library, const char* name, void* device, int which) {
  unsigned value = 0;
  const auto call = symbol<int(void*, int, unsigned*)>(library, name);
  return call != nullptr && call(device, which, &value) == 0 ? std::optional(value) : std::nullopt;
}

std::optional<std::vector<unsigned>> processes(const Library& library, void* device) {
  const auto call = symbol<int(void*, unsigned*, ProcessInfo*)>(library, "nvmlDeviceGetComputeRunningProcesses_v3");
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
  const auto start = reinterpret_cast<int (*)()>(reinterpret_cast<std::uintptr_t>(library_.need("nvmlInit_v2")));
  const int code = start();
  if (code != 0) throw Unavailable("NVML does not start (error " + std::to_string(code) + ")", "see `nvidia-smi`");
}

Management::~Management() {
  if (const auto stop = symbol<int()>(library_, "nvmlShutdown")) stop();
}

void* Management::device(const std::string& pci) const {
  void* device = nullptr;
  const auto find = symbol<int(const char*, void**)>(library_, "nvmlDeviceGetHandleByPciBusId_v2");
  if (find == nullptr || find(pci.c_str(), &device) != 0) {
    throw Unavailable("NVML does not know the device at " + pci, "see `nvidia-smi`");
  }
  return device;
}

ManagementFacts Management::facts(const std::string& pci) const {
  void* const handle = device(pci);
  ManagementFacts facts;
  char version[96] = "";
  const auto driver = symbol<int(char*, unsigned)>(library_, "nvmlSystemGetDriverVersion");
  if (driver != nullptr && driver(version, sizeof(version)) == 0) facts.driver = version;
  facts.link_generation = number(library_, "nvmlDeviceGetCurrPcieLinkGeneration", handle);
  facts.link_generation_max = number(library_, "nvmlDeviceGetMaxPcieLinkGeneration", handle);
  facts.link_width = number(library_, "nvmlDeviceGetCurrPcieLinkWidth", handle);
  facts.link_width_max = number(library_, "nvmlDeviceGetMaxPcieLinkWidth", handle);
  facts.sm_mhz = clock(library_, "nvmlDeviceGetClockInfo", handle, kSmClock);
  facts.sm_mhz_max = clock(library_, "nvmlDeviceGetMaxClockInfo", handle, kSmClock);
  facts.memory_mhz = clock(library_, "nvmlDeviceGetClockInfo", handle, kMemoryClock);
  facts.memory_mhz_max = clock(library_, "nvmlDeviceGetMaxClockInfo", handle, kMemoryClock);
  facts.processes = processes(library_, handle);
  return facts;
}

std::optional<unsigned> Management::sm_mhz(const std::string& pci) const {
  return clock(library_, "nvmlDeviceGetClockInfo", device(pci), kSmClock);
}

}  // namespace elbowroom::gpu
