// NVRTC, which compiles kernels at run time; loaded from the system or from the folders of wheels (nvidia/*/lib).
// Its calls are those of NVIDIA's NVRTC reference (docs.nvidia.com/cuda/nvrtc).
#pragma once

#include <string>
#include <vector>

#include "gpu/library.hpp"

namespace elbowroom::gpu {

class Compiler {
 public:
  explicit Compiler(const std::vector<std::string>& folders);  // Unavailable where there is none

  // A cubin for a compute capability (90: 9.0), which drivers load that are older than NVRTC: its PTX they may refuse.
  // Throws Unavailable with the compiler's first message where the source cannot be compiled for it, which an NVRTC that
  // is older than the device cannot.
  std::string compile(const std::string& source, int capability) const;
  std::string version() const;  // "12.8"
  const std::string& path() const { return library_.path(); }

 private:
  Library library_;
};

}  // namespace elbowroom::gpu
