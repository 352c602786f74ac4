#include "gpu/driver.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace elbowroom::gpu {
namespace {

const char* const kHint = "install NVIDIA's driver on a machine with a GPU, or name its libcuda.so.1 by ELBOWROOM_CUDA";

// Drivers read their environment when they are loaded or started, so that it is set before.
std::vector<std::string> driver_paths() {
  setenv(kConnections, std::to_string(kMostConnections).c_str(), 0);
  const char* const given = std::getenv("ELBOWROOM_CUDA");
  return {given != nullptr && *given != '\0' ? given : "libcuda.so.1"};
}

}  // namespace

bool GpuError::lost() const {
  static constexpr Result kLost[] = {kDeinitialized,     kEccUncorrectable, kContained,           kIllegalAddress,
                                     kLaunchTimeout,     kAssert,           kHardwareStackError,  kIllegalInstruction,
                                     kMisalignedAddress, kInvalidPc,        kInvalidAddressSpace, kLaunchFailed,
                                     kTensorMemoryLeak,  kUnknown};
  return std::find(std::begin(kLost), std::end(kLost), code_) != std::end(kLost);
}

int connections() {
  const char* const set = std::getenv(kConnections);
  return set == nullptr ? kMostConnections : std::atoi(set);
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Driver::Driver() : library_(driver_paths(), kHint) {
#define ELBOW_CUDA_LOAD(name, symbol, parameters) \
  name = reinterpret_cast<decltype(name)>(reinterpret_cast<std::uintptr_t>(library_.need(#symbol)));
  ELBOW_CUDA_CALLS(ELBOW_CUDA_LOAD)
#undef ELBOW_CUDA_LOAD
#define ELBOW_CUDA_LOAD_NEWER(name, symbol, parameters) \
  name = reinterpret_cast<decltype(name)>(reinterpret_cast<std::uintptr_t>(library_.find(#symbol)));
  ELBOW_CUDA_NEWER_CALLS(ELBOW_CUDA_LOAD_NEWER)
#undef ELBOW_CUDA_LOAD_NEWER
  if (cuDriverGetVersion(&version_) == kSuccess && version_ < kOldest) {
    throw Unavailable(
        "the driver supports CUDA " + version_text(version_) + ", and " + version_text(kOldest) + " or newer is needed",
        "update NVIDIA's driver");
  }
  const Result started = cuInit(0);
  if (started == kNoDevice)
    throw Unavailable("the driver finds no device", "see `nvidia-smi` and CUDA_VISIBLE_DEVICES");
  try {
    check(started, "starting the driver");
    check(cuDeviceGetCount(&devices_), "counting the devices");
  } catch (const GpuError& error) {
    throw Unavailable(error.what(), "see `nvidia-smi`");
  }
  if (devices_ == 0) throw Unavailable("the driver finds no device", "see `nvidia-smi` and CUDA_VISIBLE_DEVICES");
}

bool Driver::has_graphs() const {
  return cuStreamBeginCapture != nullptr && cuStreamEndCapture != nullptr && cuGraphInstantiate != nullptr &&
         cuGraphLaunch != nullptr && cuGraphDestroy != nullptr && cuGraphExecDestroy != nullptr;
}

void Driver::check(Result result, const std::string& what) const {
  if (result == kSuccess) return;
  const char* name = nullptr;
  const char* text = nullptr;
  const bool named = cuGetErrorName(result, &name) == kSuccess && name != nullptr;
  const bool described = cuGetErrorString(result, &text) == kSuccess && text != nullptr;
  throw GpuError(result, what + ": " + (named ? name : "CUDA error " + std::to_string(result)) +
                             (described ? std::string(" (") + text + ")" : ""));
}

}  // namespace elbowroom::gpu
