// The calls of libcuda.so.1 that elbowroom uses, for tests without a device. "Device" memory is host memory. Kernels are
// known by their name and take planted times; elbow_hold and elbow_copy end when their stop flag is set.
#include "gpu/driver.hpp"

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "gpu/stand_in/kernels.hpp"
#include "gpu/stand_in/simulation.hpp"

namespace elbowroom::stand_in {
namespace {

using gpu::DevicePointer;
using gpu::kInvalidValue;
using gpu::kSuccess;
using gpu::Result;

struct Device {
  std::recursive_mutex mutex;
  Simulation simulation{settings_from_environment()};
  std::map<DevicePointer, std::size_t> memory;
  std::map<DevicePointer, std::size_t> pinned;
  std::size_t used = 0;
  std::set<std::string> loaded;  // kernels that were launched before
};

Device& device() {
  static Device instance;
  return instance;
}

constexpr int kSharedMemory = 232448;  // bytes of a block at most, as of compute capability 9.0

struct StreamOf {
  Simulation::Stream stream;
};
struct EventOf {
  double at = -1;   // s; < 0 not yet
  int pending = 0;  // records that have not ended
};
struct FunctionOf {
  std::string name;
};
struct ModuleOf {
  std::string image;
  std::map<std::string, FunctionOf> functions;
};

template <class To, class From>
To* cast(From* handle) {
  return reinterpret_cast<To*>(handle);
}

bool inside(const std::map<DevicePointer, std::size_t>& blocks, DevicePointer address, std::size_t bytes) {
  auto block = blocks.upper_bound(address);
  if (block == blocks.begin()) return false;
  --block;
  return address + bytes <= block->first + block->second;
}

Result lost_or(Result otherwise) { return device().simulation.lost() ? gpu::kUnknown : otherwise; }

Result put_copy(const char* name, bool on_sms, void* to, const void* from, std::size_t bytes,
                gpu::StreamHandle stream) {
  Device& here = device();
  const std::lock_guard lock(here.mutex);
  const auto address = [](const void* pointer) { return reinterpret_cast<DevicePointer>(pointer); };
  const bool to_device = inside(here.memory, address(to), bytes);
  const bool from_device = inside(here.memory, address(from), bytes);
  if ((std::strcmp(name, "d2h") != 0 && !to_device) || (std::strcmp(name, "h2d") != 0 && !from_device)) {
    return kInvalidValue;
  }
  Operation operation;
  operation.name = name;
  operation.on_sms = on_sms;
  operation.work_s = static_cast<double>(bytes) / here.simulation.settings().rates.at(name);
  operation.finish = [=](double, double) { std::memcpy(to, from, bytes); };
  here.simulation.put(cast<StreamOf>(stream)->stream, std::move(operation));
  return lost_or(kSuccess);
}

template <class Value>
Value argument(void** arguments, int which) {
  return *static_cast<Value*>(arguments[which]);
}

// Kernels that hold SMs; the names of those in clusters of two end in _pairs.
bool holds_idle(const std::string& name) { return name == "elbow_hold" || name == "elbow_hold_pairs"; }
bool holds_sms(const std::string& name) {
  return holds_idle(name) || name == "elbow_copy" || name == "elbow_copy_pairs";
}

// elbow_hold(stop, where) and elbow_copy(stop, where, moved, to, from, bytes, ns of a piece): see apps/gpu/kernels.hpp.
Operation persistent(const std::string& name, int blocks, void** arguments) {
  Device& here = device();
  const Settings& settings = here.simulation.settings();
  Operation operation;
  operation.name = name;
  operation.on_sms = true;
  operation.held = blocks;
  operation.stop = reinterpret_cast<std::uint32_t*>(argument<DevicePointer>(arguments, 0));
  operation.stop_on_host = !inside(here.memory, argument<DevicePointer>(arguments, 0), sizeof(std::uint32_t));
  auto* const where = reinterpret_cast<std::uint32_t*>(argument<DevicePointer>(arguments, 1));
  const bool share = settings.holders_share;
  operation.start = [=] {
    for (int i = 0; i < blocks; ++i) where[i] = share ? 0U : static_cast<std::uint32_t>(i);
  };
  if (holds_idle(name)) return operation;
  auto* const moved = reinterpret_cast<std::uint64_t*>(argument<DevicePointer>(arguments, 2));
  const double paced = argument<double>(arguments, 6);  // bytes/s of a block; 0 unpaced
  const double most = settings.rates.at("elbow_copy_per_sm");
  const double rate = paced > 0 ? std::min(paced, most) : most;
  operation.finish = [=](double, double done_s) {
    for (int i = 0; i < blocks; ++i) moved[i] = static_cast<std::uint64_t>(done_s * rate);
  };
  return operation;
}

// elbow_triad(c, a, b, vectors of four floats, scale): computed, since its result is checked.
std::function<void(double, double)> triad(void** arguments) {
  auto* const c = reinterpret_cast<float*>(argument<DevicePointer>(arguments, 0));
  const auto* const a = reinterpret_cast<const float*>(argument<DevicePointer>(arguments, 1));
  const auto* const b = reinterpret_cast<const float*>(argument<DevicePointer>(arguments, 2));
  const auto count = 4 * argument<unsigned long long>(arguments, 3);
  const auto scale = argument<float>(arguments, 4);
  return [=](double, double) {
    for (unsigned long long i = 0; i < count; ++i) c[i] = a[i] + scale * b[i];
  };
}

}  // namespace

Result put_kernel(const std::string& name, int blocks, double gain, void** arguments, gpu::StreamHandle stream) {
  Device& here = device();
  const std::lock_guard lock(here.mutex);
  Operation operation;
  if (holds_sms(name)) {
    operation = persistent(name, blocks, arguments);
  } else {
    const auto duration = here.simulation.settings().kernels.find(name);
    if (duration == here.simulation.settings().kernels.end()) return kInvalidValue;
    operation.name = name;
    operation.on_sms = true;
    operation.work_s = duration->second;
    operation.gain = gain;
    if (name == "elbow_triad") operation.finish = triad(arguments);
  }
  operation.loads = here.loaded.insert(name).second && here.simulation.settings().lazy_loading;
  here.simulation.put(cast<StreamOf>(stream)->stream, std::move(operation));
  return lost_or(kSuccess);
}

const Settings& settings() { return device().simulation.settings(); }

}  // namespace elbowroom::stand_in

using namespace elbowroom::gpu;
using namespace elbowroom::stand_in;

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED Result cuInit(unsigned) { return settings().devices > 0 ? kSuccess : kNoDevice; }

EXPORTED Result cuDriverGetVersion(int* version) {
  *version = settings().driver_version;
  return kSuccess;
}

EXPORTED Result cuGetErrorName(Result code, const char** name) {
  static const std::map<Result, const char*> kNames = {{kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
                                                       {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                       {kDeviceUnavailable, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
                                                       {kNoDevice, "CUDA_ERROR_NO_DEVICE"},
                                                       {101, "CUDA_ERROR_INVALID_DEVICE"},
                                                       {kNotFound, "CUDA_ERROR_NOT_FOUND"},
                                                       {kLaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT"},
                                                       {kNotPermitted, "CUDA_ERROR_NOT_PERMITTED"},
                                                       {kUnknown, "CUDA_ERROR_UNKNOWN"}};
  const auto found = kNames.find(code);
  *name = found == kNames.end() ? nullptr : found->second;
  return *name == nullptr ? kInvalidValue : kSuccess;
}

EXPORTED Result cuGetErrorString(Result, const char** text) {
  *text = "planted in the stand-in, or a wrong call";
  return kSuccess;
}

EXPORTED Result cuDeviceGetCount(int* count) {
  *count = settings().devices;
  return kSuccess;
}

EXPORTED Result cuDeviceGet(DeviceNumber* number, int which) {
  *number = which;
  return which >= 0 && which < settings().devices ? kSuccess : 101;
}

EXPORTED Result cuDeviceGetName(char* name, int size, DeviceNumber) {
  std::snprintf(name, static_cast<std::size_t>(size), "stand-in");
  return kSuccess;
}

EXPORTED Result cuDeviceGetAttribute(int* value, int attribute, DeviceNumber) {
  const std::map<int, int> values = {{kSmCount, settings().sms},
                                     {kComputeMode, settings().busy ? 3 : 0},
                                     {kCapabilityMajor, settings().capability / 10},
                                     {kCapabilityMinor, settings().capability % 10},
                                     {kSharedMemoryOptin, kSharedMemory}};
  const auto found = values.find(attribute);
  if (found == values.end()) return kInvalidValue;
  *value = found->second;
  return kSuccess;
}

EXPORTED Result cuDeviceGetPCIBusId(char* text, int size, DeviceNumber) {
  std::snprintf(text, static_cast<std::size_t>(size), "FFFF:FF:00.0");
  return kSuccess;
}

EXPORTED Result cuDeviceTotalMem_v2(std::size_t* bytes, DeviceNumber) {
  *bytes = settings().memory;
  return kSuccess;
}

EXPORTED Result cuDevicePrimaryCtxRetain(ContextHandle* context, DeviceNumber) {
  *context = reinterpret_cast<ContextHandle>(&device());
  return settings().busy ? kDeviceUnavailable : kSuccess;
}

EXPORTED Result cuDevicePrimaryCtxRelease_v2(DeviceNumber) { return kSuccess; }
EXPORTED Result cuCtxSetCurrent(ContextHandle) { return kSuccess; }

EXPORTED Result cuCtxSynchronize() {
  const std::lock_guard lock(device().mutex);
  Simulation& simulation = device().simulation;
  return lost_or(simulation.wait([&] { return simulation.empty(); }) ? kSuccess : kLaunchTimeout);
}

EXPORTED Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *total = settings().memory;
  *free = settings().memory - device().used;
  return kSuccess;
}

EXPORTED Result cuMemAlloc_v2(DevicePointer* address, std::size_t bytes) {
  Device& here = device();
  const std::lock_guard lock(here.mutex);
  if (bytes == 0) return kInvalidValue;
  if (here.simulation.lost()) return kUnknown;
  if (bytes > settings().memory - here.used) return kOutOfMemory;
  *address = reinterpret_cast<DevicePointer>(::operator new (bytes, std::align_val_t{256}));
  here.memory[*address] = bytes;
  here.used += bytes;
  return kSuccess;
}

EXPORTED Result cuMemFree_v2(DevicePointer address) {
  Device& here = device();
  const std::lock_guard lock(here.mutex);
  const auto found = here.memory.find(address);
  if (found == here.memory.end()) return kInvalidValue;
  here.used -= found->second;
  here.memory.erase(found);
  ::operator delete (reinterpret_cast<void*>(address), std::align_val_t{256});
  return kSuccess;
}

EXPORTED Result cuMemHostRegister_v2(void* data, std::size_t bytes, unsigned) {
  const std::lock_guard lock(device().mutex);
  if (settings().pinned_refused) return kNotPermitted;
  device().pinned[reinterpret_cast<DevicePointer>(data)] = bytes;
  return kSuccess;
}

EXPORTED Result cuMemHostUnregister(void* data) {
  const std::lock_guard lock(device().mutex);
  return device().pinned.erase(reinterpret_cast<DevicePointer>(data)) == 1 ? kSuccess : kInvalidValue;
}

EXPORTED Result cuMemHostGetDevicePointer_v2(DevicePointer* address, void* data, unsigned) {
  *address = reinterpret_cast<DevicePointer>(data);
  return kSuccess;
}

EXPORTED Result cuPointerGetAttribute(void* value, int attribute, DevicePointer address) {
  const std::lock_guard lock(device().mutex);
  if (attribute == kPointerIsManaged) {
    *static_cast<unsigned*>(value) = 0;
    return kSuccess;
  }
  const bool on_device = inside(device().memory, address, 1);
  if (attribute != kPointerMemoryType || (!on_device && !inside(device().pinned, address, 1))) return kInvalidValue;
  *static_cast<unsigned*>(value) = on_device ? kMemoryTypeDevice : 1;
  return kSuccess;
}

EXPORTED Result cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, std::size_t bytes, StreamHandle stream) {
  return put_copy("h2d", false, reinterpret_cast<void*>(to), from, bytes, stream);
}

EXPORTED Result cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, std::size_t bytes, StreamHandle stream) {
  return put_copy("d2h", false, to, reinterpret_cast<void*>(from), bytes, stream);
}

EXPORTED Result cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, std::size_t bytes, StreamHandle stream) {
  return put_copy("sm_d2d", true, reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes, stream);
}

#ifndef STAND_IN_BEFORE_12_8
EXPORTED Result cuMemcpyBatchAsync(DevicePointer* to, DevicePointer* from, std::size_t* sizes, std::size_t count,
                                   CopyAttributes* attributes, std::size_t*, std::size_t attribute_count, std::size_t*,
                                   StreamHandle stream) {
  if (count == 0 || attribute_count == 0 || attributes->source_order != kSourceOrderStream) return kInvalidValue;
  const bool engine = (attributes->flags & kPreferOverlapWithCompute) != 0 && !settings().batch_on_sms;
  Result result = kSuccess;
  for (std::size_t i = 0; i < count && result == kSuccess; ++i) {
    result = put_copy(engine ? "d2d" : "sm_d2d", !engine, reinterpret_cast<void*>(to[i]),
                      reinterpret_cast<void*>(from[i]), sizes[i], stream);
  }
  return result;
}
#endif

EXPORTED Result cuStreamCreate(StreamHandle* stream, unsigned) {
  const std::lock_guard lock(device().mutex);
  *stream = reinterpret_cast<StreamHandle>(new StreamOf{device().simulation.add_stream()});
  return lost_or(kSuccess);
}

EXPORTED Result cuStreamDestroy_v2(StreamHandle stream) {
  const std::lock_guard lock(device().mutex);
  device().simulation.remove_stream(cast<StreamOf>(stream)->stream);
  delete cast<StreamOf>(stream);
  return kSuccess;
}

EXPORTED Result cuStreamQuery(StreamHandle stream) {
  const std::lock_guard lock(device().mutex);
  device().simulation.advance();
  if (cast<StreamOf>(stream)->stream->empty()) return lost_or(kSuccess);
  device().simulation.query();
  return lost_or(cast<StreamOf>(stream)->stream->empty() ? kSuccess : kNotReady);
}

EXPORTED Result cuStreamSynchronize(StreamHandle stream) {
  const std::lock_guard lock(device().mutex);
  const auto operations = cast<StreamOf>(stream)->stream;
  return lost_or(device().simulation.wait([&] { return operations->empty(); }) ? kSuccess : kLaunchTimeout);
}

EXPORTED Result cuEventCreate(EventHandle* event, unsigned) {
  *event = reinterpret_cast<EventHandle>(new EventOf);
  return lost_or(kSuccess);
}

EXPORTED Result cuEventDestroy_v2(EventHandle event) {
  const std::lock_guard lock(device().mutex);
  if (cast<EventOf>(event)->pending == 0) delete cast<EventOf>(event);  // else a record still writes to it
  return kSuccess;
}

EXPORTED Result cuEventRecord(EventHandle event, StreamHandle stream) {
  const std::lock_guard lock(device().mutex);
  EventOf* const target = cast<EventOf>(event);
  target->at = -1;
  ++target->pending;
  Operation operation;
  operation.finish = [target](double now, double) {
    target->at = now;
    --target->pending;
  };
  device().simulation.put(cast<StreamOf>(stream)->stream, std::move(operation));
  return lost_or(kSuccess);
}

EXPORTED Result cuEventQuery(EventHandle event) {
  const std::lock_guard lock(device().mutex);
  device().simulation.advance();
  if (cast<EventOf>(event)->pending == 0) return lost_or(kSuccess);
  device().simulation.query();
  return lost_or(cast<EventOf>(event)->pending == 0 ? kSuccess : kNotReady);
}

EXPORTED Result cuEventElapsedTime(float* milliseconds, EventHandle from, EventHandle to) {
  const std::lock_guard lock(device().mutex);
  const EventOf* const first = cast<EventOf>(from);
  const EventOf* const last = cast<EventOf>(to);
  if (first->at < 0 || last->at < 0) return lost_or(kNotReady);
  *milliseconds = static_cast<float>(1e3 * (last->at - first->at));
  return lost_or(kSuccess);
}

EXPORTED Result cuModuleLoadData(ModuleHandle* module, const void* image) {
  *module = reinterpret_cast<ModuleHandle>(new ModuleOf{static_cast<const char*>(image), {}});
  return lost_or(kSuccess);
}

EXPORTED Result cuModuleUnload(ModuleHandle module) {
  delete cast<ModuleOf>(module);
  return kSuccess;
}

// The stand-in's NVRTC leaves the source as it is.
EXPORTED Result cuModuleGetFunction(FunctionHandle* function, ModuleHandle module, const char* name) {
  ModuleOf* const loaded = cast<ModuleOf>(module);
  if (loaded->image.find(std::string(" ") + name + "(") == std::string::npos) return kNotFound;
  *function = reinterpret_cast<FunctionHandle>(&(loaded->functions[name] = FunctionOf{name}));
  return lost_or(kSuccess);
}

EXPORTED Result cuFuncSetAttribute(FunctionHandle, int attribute, int value) {
  return attribute == kDynamicSharedMemory && value <= kSharedMemory ? kSuccess : kInvalidValue;
}

EXPORTED Result cuLaunchKernel(FunctionHandle function, unsigned blocks, unsigned, unsigned, unsigned, unsigned,
                               unsigned, unsigned shared, StreamHandle stream, void** arguments, void**) {
  const std::string& name = cast<FunctionOf>(function)->name;
  // With less, blocks of other kernels would run on the SMs that are held.
  if (holds_sms(name) && shared != kSharedMemory) return kInvalidValue;
  // Blocks of a kernel with clusters are a multiple of the cluster.
  if (name.ends_with("_pairs") && blocks % 2 != 0) return kInvalidValue;
  return put_kernel(name, static_cast<int>(blocks), 1, arguments, stream);
}
