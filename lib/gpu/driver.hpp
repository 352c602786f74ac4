// The CUDA driver, loaded at run time. The calls, their types and constants are those of NVIDIA's CUDA Driver API
// reference (docs.nvidia.com/cuda/cuda-driver-api), declared here, so that no CUDA is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "gpu/library.hpp"

namespace elbowroom::gpu {

using Result = int;                   // CUresult
using DeviceNumber = int;             // CUdevice
using DevicePointer = std::uint64_t;  // CUdeviceptr
struct ContextHandle_;
struct StreamHandle_;
struct EventHandle_;
struct ModuleHandle_;
struct FunctionHandle_;
struct GraphHandle_;
struct GraphExecHandle_;
using ContextHandle = ContextHandle_*;
using StreamHandle = StreamHandle_*;
using EventHandle = EventHandle_*;
using ModuleHandle = ModuleHandle_*;
using FunctionHandle = FunctionHandle_*;
using GraphHandle = GraphHandle_*;
using GraphExecHandle = GraphExecHandle_*;

// CUresult
inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidValue = 1;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kDeinitialized = 4;
inline constexpr Result kDeviceUnavailable = 46;  // busy or prohibited by its compute mode
inline constexpr Result kNoDevice = 100;
inline constexpr Result kEccUncorrectable = 214;
inline constexpr Result kContained = 226;
inline constexpr Result kNotFound = 500;
inline constexpr Result kNotReady = 600;
inline constexpr Result kIllegalAddress = 700;
inline constexpr Result kLaunchTimeout = 702;
inline constexpr Result kAssert = 710;
inline constexpr Result kHardwareStackError = 714;
inline constexpr Result kIllegalInstruction = 715;
inline constexpr Result kMisalignedAddress = 716;
inline constexpr Result kInvalidAddressSpace = 717;
inline constexpr Result kInvalidPc = 718;
inline constexpr Result kLaunchFailed = 719;
inline constexpr Result kTensorMemoryLeak = 721;
inline constexpr Result kNotPermitted = 800;
inline constexpr Result kUnknown = 999;

// CUdevice_attribute
inline constexpr int kClockRate = 13;  // kHz, at most
inline constexpr int kSmCount = 16;
inline constexpr int kComputeMode = 20;
inline constexpr int kMemoryClockRate = 36;  // kHz
inline constexpr int kMemoryBusWidth = 37;   // bits
inline constexpr int kL2Size = 38;           // bytes
inline constexpr int kCapabilityMajor = 75;
inline constexpr int kCapabilityMinor = 76;
inline constexpr int kSharedMemoryOptin = 97;
inline constexpr int kUsesHostPageTables = 100;  // coherent with the host, by a link that is no PCIe

// CUfunction_attribute
inline constexpr int kDynamicSharedMemory = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
inline constexpr int kCarveout = 9;             // CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
inline constexpr int kCarveoutMaxShared = 100;  // CU_SHAREDMEM_CARVEOUT_MAX_SHARED

// CUpointer_attribute, CUmemorytype
inline constexpr int kPointerMemoryType = 2;
inline constexpr int kPointerIsManaged = 8;
inline constexpr unsigned kMemoryTypeDevice = 2;

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr int kCaptureRelaxed = 2;  // CUstreamCaptureMode: other calls are allowed meanwhile
inline constexpr unsigned kHostRegisterPortable = 1;
inline constexpr unsigned kHostRegisterDeviceMap = 2;

// CUmemLocation and CUmemcpyAttributes of cuMemcpyBatchAsync (CUDA 12.8).
struct MemoryLocation {
  int type;
  int id;
};
struct CopyAttributes {
  int source_order;  // CUmemcpySrcAccessOrder
  MemoryLocation source;
  MemoryLocation destination;
  unsigned flags;
};
static_assert(sizeof(CopyAttributes) == 24);
inline constexpr int kSourceOrderStream = 1;
inline constexpr unsigned kPreferOverlapWithCompute = 1;

// Name here, symbol in the library, parameters. Symbols with _v2 are what cuda.h of CUDA 12 maps the plain names to.
// clang-format off
#define ELBOW_CUDA_CALLS(call)                                                                                   \
  call(cuInit, cuInit, (unsigned))                                                                               \
  call(cuDriverGetVersion, cuDriverGetVersion, (int*))                                                           \
  call(cuGetErrorName, cuGetErrorName, (Result, const char**))                                                   \
  call(cuGetErrorString, cuGetErrorString, (Result, const char**))                                               \
  call(cuDeviceGetCount, cuDeviceGetCount, (int*))                                                               \
  call(cuDeviceGet, cuDeviceGet, (DeviceNumber*, int))                                                           \
  call(cuDeviceGetName, cuDeviceGetName, (char*, int, DeviceNumber))                                             \
  call(cuDeviceGetAttribute, cuDeviceGetAttribute, (int*, int, DeviceNumber))                                    \
  call(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, (char*, int, DeviceNumber))                                     \
  call(cuDeviceTotalMem, cuDeviceTotalMem_v2, (std::size_t*, DeviceNumber))                                      \
  call(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (ContextHandle*, DeviceNumber))                       \
  call(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (DeviceNumber))                                  \
  call(cuCtxSetCurrent, cuCtxSetCurrent, (ContextHandle))                                                        \
  call(cuCtxSynchronize, cuCtxSynchronize, ())                                                                   \
  call(cuMemGetInfo, cuMemGetInfo_v2, (std::size_t*, std::size_t*))                                              \
  call(cuMemAlloc, cuMemAlloc_v2, (DevicePointer*, std::size_t))                                                 \
  call(cuMemFree, cuMemFree_v2, (DevicePointer))                                                                 \
  call(cuMemHostRegister, cuMemHostRegister_v2, (void*, std::size_t, unsigned))                                  \
  call(cuMemHostUnregister, cuMemHostUnregister, (void*))                                                        \
  call(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, (DevicePointer*, void*, unsigned))               \
  call(cuPointerGetAttribute, cuPointerGetAttribute, (void*, int, DevicePointer))                                \
  call(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (DevicePointer, const void*, std::size_t, StreamHandle))         \
  call(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void*, DevicePointer, std::size_t, StreamHandle))               \
  call(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (DevicePointer, DevicePointer, std::size_t, StreamHandle))       \
  call(cuStreamCreate, cuStreamCreate, (StreamHandle*, unsigned))                                                \
  call(cuStreamDestroy, cuStreamDestroy_v2, (StreamHandle))                                                      \
  call(cuStreamQuery, cuStreamQuery, (StreamHandle))                                                             \
  call(cuStreamSynchronize, cuStreamSynchronize, (StreamHandle))                                                 \
  call(cuEventCreate, cuEventCreate, (EventHandle*, unsigned))                                                   \
  call(cuEventDestroy, cuEventDestroy_v2, (EventHandle))                                                         \
  call(cuEventRecord, cuEventRecord, (EventHandle, StreamHandle))                                                \
  call(cuEventQuery, cuEventQuery, (EventHandle))                                                                \
  call(cuEventElapsedTime, cuEventElapsedTime, (float*, EventHandle, EventHandle))                               \
  call(cuModuleLoadData, cuModuleLoadData, (ModuleHandle*, const void*))                                         \
  call(cuModuleUnload, cuModuleUnload, (ModuleHandle))                                                           \
  call(cuModuleGetFunction, cuModuleGetFunction, (FunctionHandle*, ModuleHandle, const char*))                   \
  call(cuFuncSetAttribute, cuFuncSetAttribute, (FunctionHandle, int, int))                                       \
  call(cuFuncGetAttribute, cuFuncGetAttribute, (int*, int, FunctionHandle))                                      \
  call(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor,                 \
      (int*, FunctionHandle, int, std::size_t))                                                                  \
  call(cuLaunchKernel, cuLaunchKernel, (FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned,        \
      unsigned, unsigned, StreamHandle, void**, void**))

// Calls that older drivers lack: nullptr there. cuMemcpyBatchAsync came with CUDA 12.8, graphs as used here with 11.4.
#define ELBOW_CUDA_NEWER_CALLS(call)                                                                             \
  call(cuMemcpyBatchAsync, cuMemcpyBatchAsync, (DevicePointer* to, DevicePointer* from, std::size_t* sizes,      \
      std::size_t count, CopyAttributes* attributes, std::size_t* first, std::size_t attribute_count,            \
      std::size_t* failed, StreamHandle stream))                                                                 \
  call(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, (DeviceNumber, unsigned* flags, int* active))     \
  call(cuStreamBeginCapture, cuStreamBeginCapture_v2, (StreamHandle, int mode))                                  \
  call(cuStreamEndCapture, cuStreamEndCapture, (StreamHandle, GraphHandle*))                                     \
  call(cuGraphInstantiate, cuGraphInstantiateWithFlags, (GraphExecHandle*, GraphHandle, unsigned long long))     \
  call(cuGraphLaunch, cuGraphLaunch, (GraphExecHandle, StreamHandle))                                            \
  call(cuGraphDestroy, cuGraphDestroy, (GraphHandle))                                                            \
  call(cuGraphExecDestroy, cuGraphExecDestroy, (GraphExecHandle))
// clang-format on

// A call that failed; what() is one sentence with CUDA's name of the error.
class GpuError : public std::runtime_error {
 public:
  GpuError(Result code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  Result code() const { return code_; }
  // Whether the device or its context is lost, so that every further call of this process fails: the errors of which
  // cuda.h says that they leave the process in an inconsistent state, and those of a device that is gone.
  bool lost() const;

 private:
  Result code_;
};

// The driver's calls; each returns a Result. One per process, since the driver is.
class Driver {
 public:
  static constexpr int kOldest = 11000;  // CUDA 11.0: the first that knows devices of compute capability 8.0

  // libcuda.so.1, or the file that ELBOWROOM_CUDA names. Throws Unavailable: no driver, a driver that is too old, no
  // device. Asks for kMostConnections hardware queues, unless CUDA_DEVICE_MAX_CONNECTIONS is set.
  Driver();

  // Throws GpuError where the result is not kSuccess: "`what`: CUDA_ERROR_NAME (description)".
  void check(Result result, const std::string& what) const;
  int version() const { return version_; }  // 12080 is CUDA 12.8
  int devices() const { return devices_; }
  const std::string& path() const { return library_.path(); }
  bool has_graphs() const;

  // A kernel that cannot be stopped keeps the device busy: calls that release anything would wait for it for ever.
  // After abandon() owners release nothing, and the driver of the system does so when the process ends.
  void abandon() const { abandoned_ = true; }
  bool abandoned() const { return abandoned_; }

#define ELBOW_CUDA_MEMBER(name, symbol, parameters) Result(*name) parameters;
  ELBOW_CUDA_CALLS(ELBOW_CUDA_MEMBER)
  ELBOW_CUDA_NEWER_CALLS(ELBOW_CUDA_MEMBER)
#undef ELBOW_CUDA_MEMBER

 private:
  Library library_;
  int version_ = 0;
  int devices_ = 0;
  mutable bool abandoned_ = false;
};

// Hardware queues of a device. Streams share them in turn, and in a queue work waits for what was put there before by
// another stream, such as the event behind a kernel that holds SMs. The default of CUDA is 8, 32 is the most (CUDA C++
// Programming Guide, environment variables).
inline constexpr const char* kConnections = "CUDA_DEVICE_MAX_CONNECTIONS";
inline constexpr int kMostConnections = 32;
int connections();  // as the environment has them; kMostConnections where it does not

std::string version_text(int version);  // 12080 as "12.8"

}  // namespace elbowroom::gpu
