// Matrix products by cuBLASLt, loaded from the system or from the folders of wheels (nvidia/*/lib). Its calls are those
// of NVIDIA's cuBLAS reference (docs.nvidia.com/cuda/cublas, "Using the cuBLASLt API").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/declarations.hpp"
#include "gpu/device.hpp"

namespace elbowroom::gpu {

class BlasLibrary {
 public:
  BlasLibrary(const Context& context, const std::vector<std::string>& folders);  // Unavailable where there is none
  ~BlasLibrary();
  BlasLibrary(const BlasLibrary&) = delete;
  BlasLibrary& operator=(const BlasLibrary&) = delete;

  // Looks for the file without loading it (hundreds of MB). Unavailable where there is none.
  static std::string find(const std::vector<std::string>& folders);

  const Library& library() const { return library_; }
  void* handle() const { return handle_; }
  const std::string& path() const { return library_.path(); }

 private:
  const Driver& driver_;
  Library library_;
  void* handle_ = nullptr;
};

struct GemmShape {
  std::uint64_t m = 0, n = 0, k = 0;
  int sm_target = 0;  // SMs that the kernel is planned for; 0: all
  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

// D = A B in BF16 with sums in FP32, column-major, by the algorithm that cuBLASLt's heuristic ranks first.
class Gemm {
 public:
  // Throws Unavailable where cuBLASLt has no algorithm for the shape. `a` (m x k), `b` (k x n), `d` (m x n) outlive it.
  Gemm(const Context& context, const BlasLibrary& blas, GemmShape shape, DevicePointer a, DevicePointer b,
       DevicePointer d);
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;
  void launch(const Stream& stream) const;  // GpuError
  const GemmShape& shape() const { return shape_; }

 private:
  const Library& library_;
  void* handle_;
  GemmShape shape_;
  DevicePointer a_, b_, d_;
  void* product_ = nullptr;  // cublasLtMatmulDesc_t
  void* layouts_[3] = {};    // of A, B, D
  BlasAlgorithm algorithm_{};
  DeviceMemory workspace_;
  void choose();
  void release();
};

}  // namespace elbowroom::gpu
