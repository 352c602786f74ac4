// Makes the loads of a case, and what several cases share: the context, the kernels, cuBLASLt.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/gemm.hpp"
#include "kernels.hpp"
#include "phases.hpp"
#include "request.hpp"

namespace elbowroom::gpu_bench {

class Maker {
 public:
  Maker(const gpu::Context& context, const Request& request) : context_(context), request_(request) {}

  Side make(const Work& work);  // throws Unavailable, GpuError, std::runtime_error
  // Which engine makes the copies of this work: "copy engine", "SMs", "" for other work; or why that is unknown.
  std::string engine(const Work& work);
  const gpu::Context& context() const { return context_; }

 private:
  const gpu::Context& context_;
  const Request& request_;
  std::unique_ptr<Kernels> kernels_;
  std::unique_ptr<gpu::BlasLibrary> blas_;
  std::map<std::string, std::string> engines_;
  const Kernels& kernels();
  const gpu::BlasLibrary& blas();
};

}  // namespace elbowroom::gpu_bench
