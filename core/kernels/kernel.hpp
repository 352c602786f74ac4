// Computing kernels, declared as data and run in chunks by one thread on memory it owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace elbowroom {

// What one item of a kernel costs. `bytes_*` are algorithmic; `bus_bytes` adds what the hardware moves besides
// (write-allocate of plain stores). `rate_unit` is "MB/s" (memory kernels), "M/s" (million items: prime, polling)
// or "Mflop/s" (fma). src/elbowroom/plan/kernels.json is this table as `probe kernels` prints it.
struct KernelInfo {
  std::string_view name;
  std::string_view description;
  std::string_view rate_unit;
  double flops = 0;          // per item (per item and repetition where uses_cursor)
  double bytes_read = 0;     // per item
  double bytes_written = 0;  // per item
  double bus_bytes = 0;      // per item; 0 when cache-resident
  int arrays = 0;            // number of arrays the working set is split into; 0: needs no memory of its own
  bool non_temporal = false;
  bool uses_cursor = false;     // triad_cursor: repetitions per item; polling: most nops between two polls
  bool cache_resident = false;  // sweeps a working set that stays in a cache (docs/design/method.md, rule 20):
  bool shared_cache = false;    // in the last-level cache, not in the core's own
  bool pool = false;            // a worker of a task pool
};

std::span<const KernelInfo> kernels();
const KernelInfo* find_kernel(std::string_view name);  // nullptr when unknown

// The instruction set that run-time dispatch chose, for instance "AVX3_DL", and the bytes of one vector.
std::string vector_target();
std::size_t vector_bytes();

// One thread's share of a computation. Not thread-safe: each computing thread owns one.
class Worker {
 public:
  virtual ~Worker() = default;
  // Writes the initial values; the owning thread calls it first, so that pages land where it runs or is bound.
  virtual void first_touch() = 0;
  // Processes the next `items` items, wrapping around the arrays, and returns how many it did: `items` rounded up to the
  // step of the inner loop (a few vectors; prime: exactly `items`).
  virtual std::uint64_t run(std::uint64_t items) = 0;
  // True when the memory holds what the items run so far must have produced (docs/design/method.md, rule 10). Checks a
  // sample of the arrays, cheap enough for the end of each phase.
  virtual bool validate() const = 0;
  // Items in one sweep of the working set; register-only kernels return 0.
  virtual std::uint64_t items_per_sweep() const = 0;
};

// `memory` is 64-byte aligned, `bytes` long, and outlives the worker; register-only kernels ignore both. Throws
// std::invalid_argument with a sentence when the kernel is unknown, the memory too small or cursor < 1.
std::unique_ptr<Worker> make_worker(std::string_view kernel, void* memory, std::size_t bytes, int cursor);

}  // namespace elbowroom
