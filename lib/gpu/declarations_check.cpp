// Compares the declarations of driver.hpp and declarations.hpp with NVIDIA's headers, where these are there: it compiles
// only if all agree. Nothing of it runs.
//   cmake -S lib/gpu -B build -DELBOWROOM_CUDA_HEADERS="FOLDER;..." && cmake --build build --target declarations_check
#define __CUDA_API_VERSION_INTERNAL  // cuda.h then declares every version of a call by its symbol
#include <cublasLt.h>
#include <cuda.h>
#include <nvml.h>
#include <nvrtc.h>

#include <type_traits>

#undef nvmlInit
#undef nvmlDeviceGetHandleByPciBusId
#undef nvmlDeviceGetComputeRunningProcesses

#include "gpu/declarations.hpp"
#include "gpu/driver.hpp"

namespace {

namespace gpu = elbowroom::gpu;

// Whether two types are passed alike: pointers, or numbers of the same kind and size.
template <class One, class Other>
constexpr bool kAlike = std::is_pointer_v<One> ? std::is_pointer_v<Other>
                                               : !std::is_pointer_v<Other> && sizeof(One) == sizeof(Other) &&
                                                     (std::is_integral_v<One> || std::is_enum_v<One>) ==
                                                         (std::is_integral_v<Other> || std::is_enum_v<Other>);

template <class One, class Other>
struct SameCall : std::false_type {};
template <class R, class... P, class S, class... Q>
requires(sizeof...(P) == sizeof...(Q)) struct SameCall<R(P...), S(Q...)>
    : std::bool_constant<kAlike<R, S> && (kAlike<P, Q> && ...)> {
};

#define ELBOW_CHECK_CUDA(name, symbol, parameters) \
  static_assert(SameCall<gpu::Result parameters, decltype(::symbol)>::value, #symbol);
namespace driver {
using namespace elbowroom::gpu;
ELBOW_CUDA_CALLS(ELBOW_CHECK_CUDA)
ELBOW_CUDA_NEWER_CALLS(ELBOW_CHECK_CUDA)
}  // namespace driver

#define ELBOW_CHECK(name, parameters) static_assert(SameCall<gpu::calls::name, decltype(::name)>::value, #name);
ELBOW_NVRTC_CALLS(ELBOW_CHECK)
ELBOW_CUBLASLT_CALLS(ELBOW_CHECK)
ELBOW_NVML_CALLS(ELBOW_CHECK)

static_assert(sizeof(gpu::CopyAttributes) == sizeof(CUmemcpyAttributes));
static_assert(offsetof(gpu::CopyAttributes, source_order) == offsetof(CUmemcpyAttributes, srcAccessOrder));
static_assert(offsetof(gpu::CopyAttributes, source) == offsetof(CUmemcpyAttributes, srcLocHint));
static_assert(offsetof(gpu::CopyAttributes, destination) == offsetof(CUmemcpyAttributes, dstLocHint));
static_assert(offsetof(gpu::CopyAttributes, flags) == offsetof(CUmemcpyAttributes, flags));
static_assert(sizeof(gpu::MemoryLocation) == sizeof(CUmemLocation));
static_assert(gpu::kSourceOrderStream == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM);
static_assert(gpu::kPreferOverlapWithCompute == CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE);

static_assert(gpu::kSuccess == CUDA_SUCCESS);
static_assert(gpu::kInvalidValue == CUDA_ERROR_INVALID_VALUE);
static_assert(gpu::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(gpu::kDeinitialized == CUDA_ERROR_DEINITIALIZED);
static_assert(gpu::kDeviceUnavailable == CUDA_ERROR_DEVICE_UNAVAILABLE);
static_assert(gpu::kNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(gpu::kEccUncorrectable == CUDA_ERROR_ECC_UNCORRECTABLE);
static_assert(gpu::kContained == CUDA_ERROR_CONTAINED);
static_assert(gpu::kNotFound == CUDA_ERROR_NOT_FOUND);
static_assert(gpu::kNotReady == CUDA_ERROR_NOT_READY);
static_assert(gpu::kIllegalAddress == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(gpu::kLaunchTimeout == CUDA_ERROR_LAUNCH_TIMEOUT);
static_assert(gpu::kAssert == CUDA_ERROR_ASSERT);
static_assert(gpu::kHardwareStackError == CUDA_ERROR_HARDWARE_STACK_ERROR);
static_assert(gpu::kIllegalInstruction == CUDA_ERROR_ILLEGAL_INSTRUCTION);
static_assert(gpu::kMisalignedAddress == CUDA_ERROR_MISALIGNED_ADDRESS);
static_assert(gpu::kInvalidAddressSpace == CUDA_ERROR_INVALID_ADDRESS_SPACE);
static_assert(gpu::kInvalidPc == CUDA_ERROR_INVALID_PC);
static_assert(gpu::kLaunchFailed == CUDA_ERROR_LAUNCH_FAILED);
static_assert(gpu::kTensorMemoryLeak == CUDA_ERROR_TENSOR_MEMORY_LEAK);
static_assert(gpu::kNotPermitted == CUDA_ERROR_NOT_PERMITTED);
static_assert(gpu::kUnknown == CUDA_ERROR_UNKNOWN);

static_assert(gpu::kClockRate == CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
static_assert(gpu::kSmCount == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(gpu::kComputeMode == CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
static_assert(gpu::kMemoryClockRate == CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
static_assert(gpu::kMemoryBusWidth == CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
static_assert(gpu::kL2Size == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
static_assert(gpu::kUsesHostPageTables == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
static_assert(gpu::kCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(gpu::kCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(gpu::kSharedMemoryOptin == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(gpu::kDynamicSharedMemory == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(gpu::kCarveout == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
static_assert(gpu::kCarveoutMaxShared == CU_SHAREDMEM_CARVEOUT_MAX_SHARED);
static_assert(gpu::kCaptureRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(gpu::kPointerMemoryType == CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(gpu::kPointerIsManaged == CU_POINTER_ATTRIBUTE_IS_MANAGED);
static_assert(gpu::kMemoryTypeDevice == CU_MEMORYTYPE_DEVICE);
static_assert(gpu::kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(gpu::kHostRegisterPortable == CU_MEMHOSTREGISTER_PORTABLE);
static_assert(gpu::kHostRegisterDeviceMap == CU_MEMHOSTREGISTER_DEVICEMAP);
static_assert(CU_COMPUTEMODE_PROHIBITED == 2 && CU_COMPUTEMODE_EXCLUSIVE_PROCESS == 3);  // apps/gpu/facts.cpp

static_assert(gpu::kReal32 == CUDA_R_32F);
static_assert(gpu::kBrain16 == CUDA_R_16BF);
static_assert(gpu::kCompute32 == CUBLAS_COMPUTE_32F);
static_assert(gpu::kSmCountTarget == CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET);
static_assert(gpu::kWorkspaceLimit == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(gpu::kBlasInvalid == CUBLAS_STATUS_INVALID_VALUE);
static_assert(gpu::kBlasFailed == CUBLAS_STATUS_EXECUTION_FAILED);
static_assert(gpu::kBlasUnsupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(sizeof(gpu::BlasAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(gpu::BlasHeuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(gpu::BlasHeuristic, algorithm) == offsetof(cublasLtMatmulHeuristicResult_t, algo));
static_assert(offsetof(gpu::BlasHeuristic, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(gpu::BlasHeuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(offsetof(gpu::BlasHeuristic, waves) == offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));

// The order of kReasons in management.cpp.
static_assert(nvmlClocksThrottleReasonGpuIdle == 1U << 0U &&
              nvmlClocksThrottleReasonApplicationsClocksSetting == 1U << 1U);
static_assert(nvmlClocksThrottleReasonSwPowerCap == 1U << 2U && nvmlClocksThrottleReasonHwSlowdown == 1U << 3U);
static_assert(nvmlClocksThrottleReasonSyncBoost == 1U << 4U && nvmlClocksThrottleReasonSwThermalSlowdown == 1U << 5U);
static_assert(nvmlClocksThrottleReasonHwThermalSlowdown == 1U << 6U);
static_assert(nvmlClocksThrottleReasonHwPowerBrakeSlowdown == 1U << 7U);
static_assert(nvmlClocksThrottleReasonDisplayClockSetting == 1U << 8U);
static_assert(gpu::kSmClock == NVML_CLOCK_SM);
static_assert(gpu::kMemoryClock == NVML_CLOCK_MEM);
static_assert(gpu::kNvmlNotFound == NVML_ERROR_NOT_FOUND);
static_assert(sizeof(gpu::ProcessInfo) == sizeof(nvmlProcessInfo_t));
static_assert(offsetof(gpu::ProcessInfo, memory) == offsetof(nvmlProcessInfo_t, usedGpuMemory));
static_assert(offsetof(gpu::ProcessInfo, gpu_instance) == offsetof(nvmlProcessInfo_t, gpuInstanceId));
static_assert(offsetof(gpu::ProcessInfo, compute_instance) == offsetof(nvmlProcessInfo_t, computeInstanceId));

}  // namespace
