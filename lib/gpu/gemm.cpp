#include "gpu/gemm.hpp"

#include <unistd.h>

#include "gpu/declarations.hpp"

namespace elbowroom::gpu {
namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20U;  // bytes: what NVIDIA recommends for Hopper

const char* const kHint = "pip install elbowroom[cuda], or install NVIDIA's CUDA toolkit";

std::vector<std::string> paths(const std::vector<std::string>& folders) {
  return candidates(folders, {"libcublasLt.so.*[0-9]", "libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12",
                              "libcublasLt.so.11"});
}

void check(int status, const char* name) {
  if (status == 0) return;
  throw GpuError(kInvalidValue, std::string(name) + " failed with cuBLAS status " + std::to_string(status));
}

// Calls `name` of `library`; throws where cuBLASLt returns an error.
#define ELBOW_BLAS(library, name, ...) check(ELBOW_NEED(library, name)(__VA_ARGS__), #name)

}  // namespace

BlasLibrary::BlasLibrary(const Context& context, const std::vector<std::string>& folders)
    : driver_(context.driver()), library_(paths(folders), kHint) {
  ELBOW_BLAS(library_, cublasLtCreate, &handle_);
}

BlasLibrary::~BlasLibrary() {
  if (driver_.abandoned()) return;
  try {
    ELBOW_BLAS(library_, cublasLtDestroy, handle_);
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
  ELBOW_BLAS(library_, cublasLtMatmulDescCreate, &product_, kCompute32, kReal32);
  if (shape_.sm_target > 0) {
    ELBOW_BLAS(library_, cublasLtMatmulDescSetAttribute, product_, kSmCountTarget, &shape_.sm_target,
               sizeof(shape_.sm_target));
  }
  const std::uint64_t sizes[3][2] = {{shape_.m, shape_.k}, {shape_.k, shape_.n}, {shape_.m, shape_.n}};
  for (int i = 0; i < 3; ++i) {
    ELBOW_BLAS(library_, cublasLtMatrixLayoutCreate, &layouts_[i], kBrain16, sizes[i][0], sizes[i][1],
               static_cast<std::int64_t>(sizes[i][0]));
  }
  void* preference = nullptr;
  ELBOW_BLAS(library_, cublasLtMatmulPreferenceCreate, &preference);
  BlasHeuristic result{};
  int found = 0;
  try {
    ELBOW_BLAS(library_, cublasLtMatmulPreferenceSetAttribute, preference, kWorkspaceLimit, &kWorkspace,
               sizeof(kWorkspace));
    ELBOW_BLAS(library_, cublasLtMatmulAlgoGetHeuristic, handle_, product_, layouts_[0], layouts_[1], layouts_[2],
               layouts_[2], preference, 1, &result, &found);
  } catch (const GpuError&) {
    found = 0;
  }
  ELBOW_BLAS(library_, cublasLtMatmulPreferenceDestroy, preference);
  if (found == 0 || result.state != 0) {
    throw Unavailable("cuBLASLt has no algorithm for a BF16 product " + std::to_string(shape_.m) + " x " +
                          std::to_string(shape_.n) + " x " + std::to_string(shape_.k),
                      "use multiples of 8, and a device of compute capability 8.0 or newer");
  }
  algorithm_ = result.algorithm;
}

void Gemm::release() {
  try {  // the device may be lost
    if (product_ != nullptr) ELBOW_NEED(library_, cublasLtMatmulDescDestroy)(product_);
    for (void* const layout : layouts_) {
      if (layout != nullptr) ELBOW_NEED(library_, cublasLtMatrixLayoutDestroy)(layout);
    }
  } catch (const Unavailable&) {  // nothing can be done
  }
}

void Gemm::launch(const Stream& stream) const {
  const float alpha = 1;
  const float beta = 0;
  const auto pointer = [](DevicePointer address) { return reinterpret_cast<void*>(address); };
  ELBOW_BLAS(library_, cublasLtMatmul, handle_, product_, &alpha, pointer(a_), layouts_[0], pointer(b_), layouts_[1],
             &beta, pointer(d_), layouts_[2], pointer(d_), layouts_[2], &algorithm_, pointer(workspace_.address()),
             kWorkspace, stream.handle());
}

}  // namespace elbowroom::gpu
