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

// A side and what it was made of, to which its loads refer.
struct MadeSide {
  Work work;
  Side side;
};

class Maker {
 public:
  Maker(const gpu::Context& context, const Request& request) : context_(context), request_(request) {}

  // Filling buffers with random data takes longer than a phase: sides of the device are kept for other cases, as long as
  // there is memory. Throws Unavailable, GpuError, std::runtime_error.
  std::shared_ptr<MadeSide> make(const Work& work);
  // Which engine makes the copies of this work: "copy engine", "SMs", "" for other work; or why that is unknown.
  std::string engine(const Work& work);
  const gpu::Context& context() const { return context_; }

 private:
  const gpu::Context& context_;
  const Request& request_;
  std::unique_ptr<Kernels> kernels_;
  std::unique_ptr<gpu::BlasLibrary> blas_;
  std::map<std::string, std::string> engines_;
  std::map<std::string, std::shared_ptr<MadeSide>> kept_;
  std::shared_ptr<MadeSide> made(const Work& work);
  void drop_unused();
  const Kernels& kernels();
  const gpu::BlasLibrary& blas();
};

}  // namespace elbowroom::gpu_bench
