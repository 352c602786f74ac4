// The kernels of gpu-bench, compiled by NVRTC. lib/gpu/stand_in knows them by name and by the order of their arguments.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/compiler.hpp"
#include "gpu/device.hpp"

namespace elbowroom::gpu_bench {

extern const char* const kKernelSource;

inline constexpr int kClusters = 90;  // the first compute capability with clusters of blocks

class Kernels {
 public:
  // Throws Unavailable where there is no compiler or it does not know the device.
  Kernels(const gpu::Context& context, const std::vector<std::string>& folders);

  struct Launch {
    const char* kernel;
    int blocks;
    int threads;
    bool alone_on_its_sm = false;  // takes the shared memory of a whole SM: after require_alone()
  };
  // So that blocks of a kernel take the shared memory of a whole SM each. Throws Unavailable where an SM would not take
  // exactly one.
  void require_alone(const std::string& kernel, int threads) const;
  void launch(const Launch& launch, const gpu::Stream& stream, std::vector<void*> arguments) const;
  const gpu::Context& context() const { return context_; }
  // Whether blocks can run in clusters: the kernels elbow_hold_pairs and elbow_copy_pairs are there.
  bool has_clusters() const { return context_.facts().capability >= kClusters; }

 private:
  const gpu::Context& context_;
  gpu::Module module_;
  std::map<std::string_view, gpu::FunctionHandle> functions_;  // found once: looking takes longer than a launch
  void add(const char* name);
};

}  // namespace elbowroom::gpu_bench
