// The calls of NVRTC, cuBLASLt and NVML that are used, their structures and constants: those of NVIDIA's nvrtc.h,
// cublasLt.h and nvml.h, declared here so that nothing of CUDA is needed to build. declarations_check.cpp compares them
// with these headers (docs/reference/gpu-bench.md). Handles are void*; enumerations are int.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/library.hpp"

namespace elbowroom::gpu {

// clang-format off
#define ELBOW_NVRTC_CALLS(call)                                                                                     \
  call(nvrtcVersion, (int* major, int* minor))                                                                      \
  call(nvrtcCreateProgram, (void** program, const char* source, const char* name, int headers,                      \
                            const char* const* texts, const char* const* names))                                    \
  call(nvrtcCompileProgram, (void* program, int count, const char* const* options))                                 \
  call(nvrtcGetProgramLogSize, (void* program, std::size_t* size))                                                  \
  call(nvrtcGetProgramLog, (void* program, char* text))                                                             \
  call(nvrtcGetCUBINSize, (void* program, std::size_t* size))                                                       \
  call(nvrtcGetCUBIN, (void* program, char* image))                                                                 \
  call(nvrtcDestroyProgram, (void** program))

#define ELBOW_CUBLASLT_CALLS(call)                                                                                  \
  call(cublasLtCreate, (void** handle))                                                                             \
  call(cublasLtDestroy, (void* handle))                                                                             \
  call(cublasLtMatmulDescCreate, (void** product, int compute_type, int scale_type))                                \
  call(cublasLtMatmulDescSetAttribute, (void* product, int attribute, const void* value, std::size_t size))         \
  call(cublasLtMatmulDescDestroy, (void* product))                                                                  \
  call(cublasLtMatrixLayoutCreate, (void** layout, int type, std::uint64_t rows, std::uint64_t columns,             \
                                    std::int64_t leading))                                                          \
  call(cublasLtMatrixLayoutDestroy, (void* layout))                                                                 \
  call(cublasLtMatmulPreferenceCreate, (void** preference))                                                         \
  call(cublasLtMatmulPreferenceSetAttribute, (void* preference, int attribute, const void* value, std::size_t size)) \
  call(cublasLtMatmulPreferenceDestroy, (void* preference))                                                         \
  call(cublasLtMatmulAlgoGetHeuristic, (void* handle, void* product, void* a, void* b, void* c, void* d,            \
                                        void* preference, int most, BlasHeuristic* results, int* count))            \
  call(cublasLtMatmul, (void* handle, void* product, const void* alpha, const void* a, void* a_layout,              \
                        const void* b, void* b_layout, const void* beta, const void* c, void* c_layout, void* d,    \
                        void* d_layout, const BlasAlgorithm* algorithm, void* workspace, std::size_t bytes,         \
                        void* stream))

#define ELBOW_NVML_CALLS(call)                                                                                      \
  call(nvmlInit_v2, ())                                                                                             \
  call(nvmlShutdown, ())                                                                                            \
  call(nvmlSystemGetDriverVersion, (char* text, unsigned size))                                                     \
  call(nvmlDeviceGetHandleByPciBusId_v2, (const char* address, void** device))                                      \
  call(nvmlDeviceGetCurrPcieLinkGeneration, (void* device, unsigned* value))                                        \
  call(nvmlDeviceGetMaxPcieLinkGeneration, (void* device, unsigned* value))                                         \
  call(nvmlDeviceGetCurrPcieLinkWidth, (void* device, unsigned* value))                                             \
  call(nvmlDeviceGetMaxPcieLinkWidth, (void* device, unsigned* value))                                              \
  call(nvmlDeviceGetClockInfo, (void* device, int which, unsigned* value))                                          \
  call(nvmlDeviceGetMaxClockInfo, (void* device, int which, unsigned* value))                                       \
  call(nvmlDeviceGetPowerUsage, (void* device, unsigned* milliwatts))                                               \
  call(nvmlDeviceGetCurrentClocksThrottleReasons, (void* device, unsigned long long* bits))                         \
  call(nvmlDeviceGetComputeRunningProcesses_v3, (void* device, unsigned* count, ProcessInfo* infos))
// clang-format on

inline constexpr int kReal32 = 0;            // cudaDataType_t CUDA_R_32F
inline constexpr int kBrain16 = 14;          // cudaDataType_t CUDA_R_16BF
inline constexpr int kCompute32 = 68;        // cublasComputeType_t CUBLAS_COMPUTE_32F
inline constexpr int kSmCountTarget = 15;    // CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, an int
inline constexpr int kWorkspaceLimit = 1;    // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 64 bits
inline constexpr int kBlasInvalid = 7;       // CUBLAS_STATUS_INVALID_VALUE
inline constexpr int kBlasFailed = 13;       // CUBLAS_STATUS_EXECUTION_FAILED
inline constexpr int kBlasUnsupported = 15;  // CUBLAS_STATUS_NOT_SUPPORTED

struct BlasAlgorithm {  // cublasLtMatmulAlgo_t
  std::uint64_t data[8];
};

struct BlasHeuristic {  // cublasLtMatmulHeuristicResult_t
  BlasAlgorithm algorithm;
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

inline constexpr int kSmClock = 1;       // NVML_CLOCK_SM
inline constexpr int kMemoryClock = 2;   // NVML_CLOCK_MEM
inline constexpr int kNvmlNotFound = 6;  // NVML_ERROR_NOT_FOUND

struct ProcessInfo {  // nvmlProcessInfo_v2_t, which nvmlDeviceGetComputeRunningProcesses_v3 fills
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};

// The type of each call, by its name.
namespace calls {
#define ELBOW_CALL_TYPE(name, parameters) using name = int parameters;
ELBOW_NVRTC_CALLS(ELBOW_CALL_TYPE)
ELBOW_CUBLASLT_CALLS(ELBOW_CALL_TYPE)
ELBOW_NVML_CALLS(ELBOW_CALL_TYPE)
#undef ELBOW_CALL_TYPE
}  // namespace calls

}  // namespace elbowroom::gpu

// A call of a loaded library: Unavailable where the library has none; nullptr where it has none.
#define ELBOW_NEED(library, name) ((library).as<elbowroom::gpu::calls::name>((library).need(#name)))
#define ELBOW_FIND(library, name) ((library).as<elbowroom::gpu::calls::name>((library).find(#name)))
