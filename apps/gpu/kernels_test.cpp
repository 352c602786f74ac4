// The kernels, compiled by NVIDIA's NVRTC where ELBOWROOM_NVRTC names its folder (of a wheel: nvidia/cuda_nvrtc/lib). No
// device is needed.
#include "kernels.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

#include "gpu/compiler.hpp"

namespace elbowroom::gpu_bench {
namespace {

const char* nvrtc() { return std::getenv("ELBOWROOM_NVRTC"); }

}  // namespace

TEST_CASE("NVRTC makes cubins of the kernels for compute capabilities 8.0 to 10.0" *
          doctest::skip(nvrtc() == nullptr)) {
  const gpu::Compiler compiler({nvrtc()});
  for (const int capability : {80, 86, 89, 90, 100}) {
    CAPTURE(capability);
    CHECK(compiler.compile(kKernelSource, capability).substr(1, 3) == "ELF");
  }
}

TEST_CASE("NVRTC's message is kept for a compute capability that it does not know" *
          doctest::skip(nvrtc() == nullptr)) {
  const gpu::Compiler compiler({nvrtc()});
  try {
    compiler.compile(kKernelSource, 990);
    FAIL("compiled");
  } catch (const gpu::Unavailable& error) {
    CHECK(std::string(error.what()).find("compute capability 99.0: nvrtc: error") != std::string::npos);
  }
}

}  // namespace elbowroom::gpu_bench
