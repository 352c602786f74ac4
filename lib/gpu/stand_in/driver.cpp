// The calls of libcuda.so.1 that elbowroom uses, for tests without a device. "Device" memory is host memory. Kernels are
// known by their name and take planted times; elbow_hold and elbow_copy end when their stop flag is set.
#include "gpu/driver.hpp"

#include <pthread.h>

#include <cstdio>
#include <map>
#include <string>

#include "gpu/stand_in/device.hpp"

using namespace elbowroom::gpu;
using namespace elbowroom::stand_in;

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

// As NVIDIA's driver does, it keeps data of each thread, and runs this code when the thread ends.
void thread_ends(void*) {}

void keep_data_of_thread() {
  static const pthread_key_t kKey = [] {
    pthread_key_t key = 0;
    pthread_key_create(&key, thread_ends);
    return key;
  }();
  pthread_setspecific(kKey, &device());
}

}  // namespace

EXPORTED Result cuInit(unsigned) {
  refresh();
  keep_data_of_thread();
  return settings().devices > 0 ? kSuccess : kNoDevice;
}

EXPORTED Result cuDriverGetVersion(int* version) {
  refresh();
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
  std::snprintf(name, static_cast<std::size_t>(size), "%s", settings().name.c_str());
  return kSuccess;
}

EXPORTED Result cuDeviceGetAttribute(int* value, int attribute, DeviceNumber) {
  const std::map<int, int> values = {{kSmCount, settings().sms},
                                     {kComputeMode, settings().busy ? 3 : 0},
                                     {kCapabilityMajor, settings().capability / 10},
                                     {kCapabilityMinor, settings().capability % 10},
                                     {kSharedMemoryOptin, kSharedMemory},
                                     {kClockRate, settings().clock_khz},
                                     {kMemoryClockRate, settings().memory_khz},
                                     {kMemoryBusWidth, settings().bus_bits},
                                     {kL2Size, 0}};
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
  if (settings().busy) return kDeviceUnavailable;
  ++device().contexts;
  return kSuccess;
}

EXPORTED Result cuDevicePrimaryCtxRelease_v2(DeviceNumber) {
  --device().contexts;
  return kSuccess;
}

EXPORTED Result cuDevicePrimaryCtxGetState(DeviceNumber, unsigned* flags, int* active) {
  *flags = 0;
  *active = has_context() ? 1 : 0;
  return kSuccess;
}

EXPORTED Result cuCtxSetCurrent(ContextHandle) { return kSuccess; }

EXPORTED Result cuCtxSynchronize() {
  const std::lock_guard lock(device().mutex);
  return wait("cuCtxSynchronize", [] { return device().simulation->empty(); });
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
  if (here.simulation->lost()) return kUnknown;
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
  wait("cuMemFree", [&] { return here.simulation->empty(); });
  here.products.erase(address);
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
  return put_copies({{"h2d", reinterpret_cast<void*>(to), from, bytes}}, stream);
}

EXPORTED Result cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, std::size_t bytes, StreamHandle stream) {
  return put_copies({{"d2h", to, reinterpret_cast<void*>(from), bytes}}, stream);
}

EXPORTED Result cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, std::size_t bytes, StreamHandle stream) {
  return put_copies({{"sm_d2d", reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes}}, stream);
}

#ifndef STAND_IN_OLD
EXPORTED Result cuMemcpyBatchAsync(DevicePointer* to, DevicePointer* from, std::size_t* sizes, std::size_t count,
                                   CopyAttributes* attributes, std::size_t*, std::size_t attribute_count, std::size_t*,
                                   StreamHandle stream) {
  if (count == 0 || attribute_count == 0 || attributes->source_order != kSourceOrderStream) return kInvalidValue;
  if (cast<StreamOf>(stream)->capturing) return kNotPermitted;  // graphs have no such copies
  const bool engine = (attributes->flags & kPreferOverlapWithCompute) != 0 && !settings().batch_on_sms;
  std::vector<Copy> copies;
  std::map<DevicePointer, std::size_t> written;
  for (std::size_t i = 0; i < count; ++i) {
    // The copies of a batch are in no order, so that none may depend on another.
    if (inside(written, to[i], 1) || inside(written, to[i] + sizes[i] - 1, 1)) return kInvalidValue;
    written[to[i]] = sizes[i];
    copies.push_back(
        {engine ? "d2d" : "sm_d2d", reinterpret_cast<void*>(to[i]), reinterpret_cast<void*>(from[i]), sizes[i]});
  }
  return put_copies(copies, stream);
}

EXPORTED Result cuStreamBeginCapture_v2(StreamHandle stream, int) {
  cast<StreamOf>(stream)->capturing = std::make_unique<GraphOf>();
  return kSuccess;
}

EXPORTED Result cuStreamEndCapture(StreamHandle stream, GraphHandle* graph) {
  *graph = reinterpret_cast<GraphHandle>(cast<StreamOf>(stream)->capturing.release());
  return *graph == nullptr ? kInvalidValue : kSuccess;
}

EXPORTED Result cuGraphInstantiateWithFlags(GraphExecHandle* exec, GraphHandle graph, unsigned long long) {
  *exec = reinterpret_cast<GraphExecHandle>(new GraphOf(*cast<GraphOf>(graph)));
  return lost_or(kSuccess);
}

EXPORTED Result cuGraphLaunch(GraphExecHandle exec, StreamHandle stream) {
  const std::lock_guard lock(device().mutex);
  device().simulation->spend(settings().submit_s);
  for (const Operation& operation : cast<GraphOf>(exec)->operations) submit(stream, operation);
  return lost_or(kSuccess);
}

EXPORTED Result cuGraphDestroy(GraphHandle graph) {
  delete cast<GraphOf>(graph);
  return kSuccess;
}

EXPORTED Result cuGraphExecDestroy(GraphExecHandle exec) {
  delete cast<GraphOf>(exec);
  return kSuccess;
}
#endif

EXPORTED Result cuStreamCreate(StreamHandle* stream, unsigned) {
  const std::lock_guard lock(device().mutex);
  *stream = reinterpret_cast<StreamHandle>(new StreamOf{device().simulation->add_stream(), nullptr});
  return lost_or(kSuccess);
}

EXPORTED Result cuStreamDestroy_v2(StreamHandle stream) {
  const std::lock_guard lock(device().mutex);
  device().simulation->remove_stream(cast<StreamOf>(stream)->stream);
  delete cast<StreamOf>(stream);
  return kSuccess;
}

EXPORTED Result cuStreamQuery(StreamHandle stream) {
  const std::lock_guard lock(device().mutex);
  device().simulation->spend(settings().query_s);
  return lost_or(cast<StreamOf>(stream)->stream->empty() ? kSuccess : kNotReady);
}

EXPORTED Result cuStreamSynchronize(StreamHandle stream) {
  const std::lock_guard lock(device().mutex);
  const auto operations = cast<StreamOf>(stream)->stream;
  return wait("cuStreamSynchronize", [&] { return operations->empty(); });
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
  submit(stream, std::move(operation));
  return lost_or(kSuccess);
}

EXPORTED Result cuEventQuery(EventHandle event) {
  const std::lock_guard lock(device().mutex);
  device().simulation->spend(settings().query_s);
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

EXPORTED Result cuFuncSetAttribute(FunctionHandle function, int attribute, int value) {
  if (attribute == kCarveout && value <= kCarveoutMaxShared) {
    if (!settings().carveout_ignored) cast<FunctionOf>(function)->carveout = value;
    return kSuccess;
  }
  return attribute == kDynamicSharedMemory && value <= kSharedMemory ? kSuccess : kInvalidValue;
}

EXPORTED Result cuFuncGetAttribute(int* value, int attribute, FunctionHandle function) {
  *value = cast<FunctionOf>(function)->carveout;
  return attribute == kCarveout ? kSuccess : kInvalidValue;
}

EXPORTED Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, FunctionHandle, int, std::size_t shared) {
  *blocks = shared == kSharedMemory ? settings().blocks_per_sm : 2;
  return kSuccess;
}

EXPORTED Result cuLaunchKernel(FunctionHandle function, unsigned blocks, unsigned, unsigned, unsigned, unsigned,
                               unsigned, unsigned shared, StreamHandle stream, void** arguments, void**) {
  const FunctionOf& called = *cast<FunctionOf>(function);
  // With less, blocks of other kernels would run on the SMs that are held.
  if (holds_sms(called.name) && shared != kSharedMemory) return kInvalidValue;
  // Blocks of a kernel with clusters are a multiple of the cluster.
  if (called.name.ends_with("_pairs") && blocks % 2 != 0) return kInvalidValue;
  return put_kernel({called.name, static_cast<int>(blocks), 1, called.carveout == kCarveoutMaxShared, {}}, arguments,
                    stream);
}
