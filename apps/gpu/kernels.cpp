#include "kernels.hpp"

namespace elbowroom::gpu_bench {

// elbow_hold and elbow_copy poll a flag in device memory: polling one in host memory slows all other kernels down.
// elbow_copy: each block copies its own part over and over, in pieces of 256 KiB, no faster than `pace` bytes/s (0: as fast
// as it can). After each piece it notes the bytes that it has read and the time, which the host reads at both ends of what
// is counted. Those that end in _pairs do the same in clusters of two blocks.
const char* const kKernelSource = R"(
extern "C" __global__ void elbow_triad(float4* c, const float4* a, const float4* b, unsigned long long n, float s) {
  const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    const float4 x = a[i], y = b[i];
    c[i] = make_float4(x.x + s * y.x, x.y + s * y.y, x.z + s * y.z, x.w + s * y.w);
  }
}

extern "C" __global__ void elbow_small(unsigned* count) {
  if (threadIdx.x == 0) *count += 1;
}

__device__ unsigned this_sm() {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm;
}

__device__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ void hold(volatile unsigned* stop, unsigned* where) {
  if (threadIdx.x != 0) return;
  where[blockIdx.x] = this_sm();
  __threadfence();
  while (*stop == 0) __nanosleep(500);
}

__device__ void note(volatile unsigned long long* moved, unsigned long long bytes) {
  moved[2 * blockIdx.x] = bytes;
  moved[2 * blockIdx.x + 1] = nanoseconds();
}

__device__ void copy_part(volatile unsigned* stop, unsigned* where, unsigned long long* moved, uint4* to,
                          const uint4* from, unsigned long long bytes, double pace) {
  extern __shared__ unsigned stopped[];
  const unsigned long long own = bytes / sizeof(uint4) / gridDim.x;
  const unsigned long long piece = 16384;
  const unsigned long long begun = nanoseconds();
  to += own * blockIdx.x;
  from += own * blockIdx.x;
  unsigned long long done = 0;
  if (threadIdx.x == 0) {
    note(moved, 0);
    __threadfence();
    where[blockIdx.x] = this_sm();
    __threadfence();
  }
  for (unsigned long long at = 0;; at = at + piece < own ? at + piece : 0) {
    if (threadIdx.x == 0) {
      while (pace > 0 && *stop == 0 && done * 1e9 > pace * (nanoseconds() - begun)) __nanosleep(100);
      stopped[0] = *stop;
    }
    __syncthreads();
    if (stopped[0] != 0) break;
    const unsigned long long end = at + piece < own ? at + piece : own;
    for (unsigned long long i = at + threadIdx.x; i < end; i += blockDim.x) to[i] = from[i];
    done += (end - at) * sizeof(uint4);
    __syncthreads();
    if (threadIdx.x == 0) note(moved, done);
  }
}

extern "C" __global__ void elbow_hold(volatile unsigned* stop, unsigned* where) { hold(stop, where); }

extern "C" __global__ void elbow_copy(volatile unsigned* stop, unsigned* where, unsigned long long* moved, uint4* to,
                                      const uint4* from, unsigned long long bytes, double pace) {
  copy_part(stop, where, moved, to, from, bytes, pace);
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) elbow_hold_pairs(volatile unsigned* stop, unsigned* where) {
  hold(stop, where);
}

extern "C" __global__ void __cluster_dims__(2, 1, 1)
    elbow_copy_pairs(volatile unsigned* stop, unsigned* where, unsigned long long* moved, uint4* to, const uint4* from,
                     unsigned long long bytes, double pace) {
  copy_part(stop, where, moved, to, from, bytes, pace);
}
#endif
)";

Kernels::Kernels(const gpu::Context& context, const std::vector<std::string>& folders)
    : context_(context), module_(context, gpu::Compiler(folders).compile(kKernelSource, context.facts().capability)) {
  for (const char* const name : {"elbow_triad", "elbow_small", "elbow_hold", "elbow_copy"}) add(name);
  if (!has_clusters()) return;
  for (const char* const name : {"elbow_hold_pairs", "elbow_copy_pairs"}) add(name);
}

// All prefer shared memory to cache: an SM changes its split only while it is idle, so that blocks that need all shared
// memory would wait for others that never leave one idle.
void Kernels::add(const char* name) {
  const gpu::FunctionHandle function = functions_[name] = module_.function(name);
  context_.driver().check(context_.driver().cuFuncSetAttribute(function, gpu::kCarveout, gpu::kCarveoutMaxShared),
                          "asking for shared memory instead of cache");
}

void Kernels::require_alone(const std::string& kernel, int threads) const {
  const gpu::Driver& driver = context_.driver();
  const gpu::FunctionHandle function = functions_.at(kernel);
  const std::size_t shared = context_.facts().shared_memory;
  driver.check(driver.cuFuncSetAttribute(function, gpu::kDynamicSharedMemory, static_cast<int>(shared)),
               "the shared memory of a whole SM");
  const char* const hint = "report it with `elbowroom doctor --json`";
  int carveout = 0;
  driver.check(driver.cuFuncGetAttribute(&carveout, gpu::kCarveout, function), "reading the split of an SM's memory");
  if (carveout < 0) {
    throw gpu::Unavailable("the driver does not prefer shared memory to cache, so that SMs may never be held", hint);
  }
  // Occupancy is of blocks without clusters. In clusters, %smid shows blocks that share an SM.
  if (kernel.ends_with("_pairs")) return;
  int blocks = 0;
  driver.check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads, shared),
               "counting the blocks of an SM");
  if (blocks == 1) return;
  throw gpu::Unavailable(
      std::to_string(blocks) + " blocks of kernel " + kernel + " fit on an SM, which one was to hold", hint);
}

void Kernels::launch(const Launch& launch, const gpu::Stream& stream, std::vector<void*> arguments) const {
  const gpu::Driver& driver = context_.driver();
  const gpu::FunctionHandle function = functions_.at(launch.kernel);
  // All of it: 1 KiB that is left is enough for a block without shared memory, such as triad's. No kernel has static
  // shared memory, which would count too.
  const auto shared = launch.alone_on_its_sm ? static_cast<unsigned>(context_.facts().shared_memory) : 0U;
  driver.check(
      driver.cuLaunchKernel(function, static_cast<unsigned>(launch.blocks), 1, 1, static_cast<unsigned>(launch.threads),
                            1, 1, shared, stream.handle(), arguments.data(), nullptr),
      std::string("starting kernel ") + launch.kernel);
}

}  // namespace elbowroom::gpu_bench
