// The calls of libnvidia-ml.so.1 that elbowroom uses, for tests without a device.
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "gpu/declarations.hpp"
#include "gpu/stand_in/kernels.hpp"

#define EXPORTED extern "C" __attribute__((visibility("default")))

using elbowroom::gpu::ProcessInfo;
using namespace elbowroom::stand_in;

EXPORTED int nvmlInit_v2() {
  refresh();
  return 0;
}
EXPORTED int nvmlShutdown() { return 0; }

EXPORTED int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "0.0 (stand-in)");
  return 0;
}

EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char* pci, void** device) {
  static int handle = 0;
  *device = &handle;
  return std::strcmp(pci, "ffff:ff:00.0") == 0 ? 0 : elbowroom::gpu::kNvmlNotFound;
}

EXPORTED int nvmlDeviceGetCurrPcieLinkGeneration(void*, unsigned* value) {
  *value = pace() < 1 ? 1 : 5;
  return 0;
}

EXPORTED int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* value) {
  *value = 5;
  return 0;
}

EXPORTED int nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* value) {
  *value = static_cast<unsigned>(settings().link_width);
  return 0;
}

EXPORTED int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* value) {
  *value = 16;
  return 0;
}

EXPORTED int nvmlDeviceGetClockInfo(void*, int which, unsigned* value) {
  *value = which == elbowroom::gpu::kSmClock ? static_cast<unsigned>(1700 * pace()) : 3200;
  return 0;
}

EXPORTED int nvmlDeviceGetMaxClockInfo(void*, int which, unsigned* value) {
  *value = which == elbowroom::gpu::kSmClock ? 1980 : 3200;
  return 0;
}

EXPORTED int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = static_cast<unsigned>(1e3 * settings().power_w);
  return 0;
}

EXPORTED int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* bits) {
  *bits = settings().throttle;
  return 0;
}

EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, ProcessInfo* infos) {
  unsigned filled = 0;
  constexpr unsigned kOfHost = 1000000;
  const auto own = static_cast<unsigned>(getpid()) + (settings().host_pids ? kOfHost : 0);
  if (has_context()) infos[filled++] = {own, 0, 0, 0};
  for (const unsigned pid : settings().processes) infos[filled++] = {pid, 0, 0, 0};
  *count = filled;
  return 0;
}
