#include "gpu/gemm.hpp"

#include <unistd.h>

namespace elbowroom::gpu {
namespace {

constexpr int kReal32 = 0;                                  // cudaDataType_t CUDA_R_32F
constexpr int kBrain16 = 14;                                // cudaDataType_t CUDA_R_16BF
constexpr int kCompute32 = 68;                              // cublasComputeType_t CUBLAS_COMPUTE_32F
constexpr int kSmCountTarget = 15;                          // CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET
constexpr int kMostWorkspace = 1;                           // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
constexpr std::size_t kWorkspace = std::size_t{32} << 20U;  // bytes: what NVIDIA recommends for Hopper

struct HeuristicResult {  // cublasLtMatmulHeuristicResult_t
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96);

const char* const kHint = "pip install elbowroom[cuda], or install NVIDIA's CUDA toolkit";

std::vector<std::string> paths(const std::vector<std::string>& folders) {
  return candidates(folders, {"libcublasLt.so.*[0-9]", "libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12",
                              "libcublasLt.so.11"});
}

// Calls `name` with these arguments; throws where cuBLASLt returns an error.
template <class... Parameters, class... Arguments>
void call(const Library& library, const char* name, int (*)(Parameters...), Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Parameters...)>(reinterpret_cast<std::uintptr_t>(library.need(name)));
  const int status = function(arguments...);
  if (status != 0)
    throw GpuError(kInvalidValue, std::string(name) + " failed with cuBLAS status " + std::to_string(status));
}

template <class... Parameters>
constexpr int (*kTakes)(Parameters...) = nullptr;

}  // namespace

BlasLibrary::BlasLibrary(const std::vector<std::string>& folders) : library_(paths(folders), kHint) {
  call(library_, "cublasLtCreate", kTakes<void**>, &handle_);
}

BlasLibrary::~BlasLibrary() {
  try {
    call(library_, "cublasLtDestroy", kTakes<void*>, handle_);
  } catch (const std::exception&) {  // the device may be lost
  }
}

std::string BlasLibrary::find(const std::vector<std::string>& folders) {
  std::vector<std::string> all = folders;
  for (const char* const folder :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/local/cuda/lib64"}) {
    all.emplace_back(folder);
  }
  for (const std::string& path : paths(all)) {
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  throw Unavailable("libcublasLt.so was not found", kHint);
}

Gemm::Gemm(const Context& context, const BlasLibrary& blas, GemmShape shape, DevicePointer a, DevicePointer b,
           DevicePointer d)
    : library_(blas.library()),
      handle_(blas.handle()),
      shape_(shape),
      a_(a),
      b_(b),
      d_(d),
      workspace_(context, kWorkspace) {
  try {
    choose();
  } catch (...) {
    release();
    throw;
  }
}

Gemm::~Gemm() { release(); }

void Gemm::choose() {
  call(library_, "cublasLtMatmulDescCreate", kTakes<void**, int, int>, &product_, kCompute32, kReal32);
  if (shape_.sm_target > 0) {
    call(library_, "cublasLtMatmulDescSetAttribute", kTakes<void*, int, const void*, std::size_t>, product_,
         kSmCountTarget, &shape_.sm_target, sizeof(shape_.sm_target));
  }
  const std::uint64_t sizes[3][2] = {{shape_.m, shape_.k}, {shape_.k, shape_.n}, {shape_.m, shape_.n}};
  for (int i = 0; i < 3; ++i) {
    call(library_, "cublasLtMatrixLayoutCreate", kTakes<void**, int, std::uint64_t, std::uint64_t, std::int64_t>,
         &layouts_[i], kBrain16, sizes[i][0], sizes[i][1], static_cast<std::int64_t>(sizes[i][0]));
  }
  void* preference = nullptr;
  call(library_, "cublasLtMatmulPreferenceCreate", kTakes<void**>, &preference);
  HeuristicResult result{};
  int found = 0;
  try {
    call(library_, "cublasLtMatmulPreferenceSetAttribute", kTakes<void*, int, const void*, std::size_t>, preference,
         kMostWorkspace, &kWorkspace, sizeof(kWorkspace));
    call(library_, "cublasLtMatmulAlgoGetHeuristic",
         kTakes<void*, void*, void*, void*, void*, void*, void*, int, HeuristicResult*, int*>, handle_, product_,
         layouts_[0], layouts_[1], layouts_[2], layouts_[2], preference, 1, &result, &found);
  } catch (const GpuError&) {
    found = 0;
  }
  call(library_, "cublasLtMatmulPreferenceDestroy", kTakes<void*>, preference);
  if (found == 0 || result.state != 0) {
    throw Unavailable("cuBLASLt has no algorithm for a BF16 product " + std::to_string(shape_.m) + " x " +
                          std::to_string(shape_.n) + " x " + std::to_string(shape_.k),
                      "use multiples of 8, and a device of compute capability 8.0 or newer");
  }
  for (int i = 0; i < 8; ++i) algorithm_[i] = result.algorithm[i];
}

void Gemm::release() {
  const auto destroy = [this](const char* name, void* object) {
    if (object == nullptr) return;
    try {
      call(library_, name, kTakes<void*>, object);
    } catch (const std::exception&) {  // nothing can be done
    }
  };
  destroy("cublasLtMatmulDescDestroy", product_);
  for (void* const layout : layouts_) destroy("cublasLtMatrixLayoutDestroy", layout);
}

void Gemm::launch(const Stream& stream) const {
  const float alpha = 1;
  const float beta = 0;
  const auto pointer = [](DevicePointer address) { return reinterpret_cast<void*>(address); };
  call(library_, "cublasLtMatmul",
       kTakes<void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*, void*,
              void*, const void*, void*, std::size_t, StreamHandle>,
       handle_, product_, &alpha, pointer(a_), layouts_[0], pointer(b_), layouts_[1], &beta, pointer(d_), layouts_[2],
       pointer(d_), layouts_[2], algorithm_, pointer(workspace_.address()), kWorkspace, stream.handle());
}

}  // namespace elbowroom::gpu
