#include "kernels/kernel.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

#include "kernels/loops.hpp"
#include "kernels/workers.hpp"

namespace elbowroom {
namespace {

using loops::Width;

struct Entry {
  KernelInfo info;
  std::unique_ptr<Worker> (*make)(void* memory, std::size_t bytes, int cursor);
};

// Bus bytes count a plain store twice: the line is read before it is written. Cores that avoid the read move less;
// what a run measures of that is applied to its results (docs/design/method.md, rule 9; results/stores.py). A
// cache-resident kernel moves nothing over the memory bus; the lines that workers of a pool pass from core to core are not counted.
constexpr std::array kEntries{
    Entry{.info = {.name = "prime",
                   .description = "naive prime count, integer registers only; an item is a candidate",
                   .rate_unit = "M/s"},
          .make = [](void*, std::size_t, int) { return make_prime(); }},
    Entry{.info = {.name = "fma",
                   .description = "fused multiply-add peak, widest vectors; an item is one double",
                   .rate_unit = "Mflop/s",
                   .flops = 2},
          .make = [](void*, std::size_t, int) { return make_fma(Width::widest); }},
    Entry{.info = {.name = "fma128",
                   .description = "fused multiply-add peak, vectors of 128 bits",
                   .rate_unit = "Mflop/s",
                   .flops = 2},
          .make = [](void*, std::size_t, int) { return make_fma(Width::bits128); }},
    Entry{.info = {.name = "fma256",
                   .description = "fused multiply-add peak, vectors of 256 bits",
                   .rate_unit = "Mflop/s",
                   .flops = 2},
          .make = [](void*, std::size_t, int) { return make_fma(Width::bits256); }},
    Entry{.info = {.name = "fma512",
                   .description = "fused multiply-add peak, vectors of 512 bits",
                   .rate_unit = "Mflop/s",
                   .flops = 2},
          .make = [](void*, std::size_t, int) { return make_fma(Width::bits512); }},
    Entry{.info = {.name = "memset_nt",
                   .description = "a[i] = s, non-temporal stores",
                   .rate_unit = "MB/s",
                   .bytes_written = 8,
                   .bus_bytes = 8,
                   .arrays = 1,
                   .non_temporal = true},
          .make = [](void* memory, std::size_t bytes, int) { return make_memset_nt(memory, bytes); }},
    Entry{.info = {.name = "load",
                   .description = "sum of a[i], read only",
                   .rate_unit = "MB/s",
                   .flops = 1,
                   .bytes_read = 8,
                   .bus_bytes = 8,
                   .arrays = 1},
          .make = [](void* memory, std::size_t bytes, int) { return make_load(memory, bytes); }},
    Entry{.info = {.name = "copy",
                   .description = "c[i] = a[i], plain stores",
                   .rate_unit = "MB/s",
                   .bytes_read = 8,
                   .bytes_written = 8,
                   .bus_bytes = 24,
                   .arrays = 2},
          .make = [](void* memory, std::size_t bytes, int) { return make_copy(memory, bytes, false); }},
    Entry{.info = {.name = "copy_nt",
                   .description = "c[i] = a[i], non-temporal stores",
                   .rate_unit = "MB/s",
                   .bytes_read = 8,
                   .bytes_written = 8,
                   .bus_bytes = 16,
                   .arrays = 2,
                   .non_temporal = true},
          .make = [](void* memory, std::size_t bytes, int) { return make_copy(memory, bytes, true); }},
    Entry{.info = {.name = "triad",
                   .description = "c[i] = a[i] + s * b[i], plain stores",
                   .rate_unit = "MB/s",
                   .flops = 2,
                   .bytes_read = 16,
                   .bytes_written = 8,
                   .bus_bytes = 32,
                   .arrays = 3},
          .make = [](void* memory, std::size_t bytes, int) { return make_triad(memory, bytes, false); }},
    Entry{.info = {.name = "triad_nt",
                   .description = "c[i] = a[i] + s * b[i], non-temporal stores",
                   .rate_unit = "MB/s",
                   .flops = 2,
                   .bytes_read = 16,
                   .bytes_written = 8,
                   .bus_bytes = 24,
                   .arrays = 3,
                   .non_temporal = true},
          .make = [](void* memory, std::size_t bytes, int) { return make_triad(memory, bytes, true); }},
    Entry{.info = {.name = "triad_cursor",
                   .description = "triad repeated cursor times on each item before the next",
                   .rate_unit = "MB/s",
                   .flops = 2,
                   .bytes_read = 16,
                   .bytes_written = 8,
                   .bus_bytes = 32,
                   .arrays = 3,
                   .uses_cursor = true},
          .make = [](void* memory, std::size_t bytes, int cursor) { return make_triad_cursor(memory, bytes, cursor); }},
    Entry{.info = {.name = "load_cache",
                   .description = "load on half of the core's L2 cache",
                   .rate_unit = "MB/s",
                   .flops = 1,
                   .bytes_read = 8,
                   .arrays = 1,
                   .cache_resident = true},
          .make = [](void* memory, std::size_t bytes,
                     int) { return make_load(memory, std::min(bytes, cache_resident_bytes())); }},
    Entry{.info = {.name = "triad_cache",
                   .description = "triad on half of the core's L2 cache",
                   .rate_unit = "MB/s",
                   .flops = 2,
                   .bytes_read = 16,
                   .bytes_written = 8,
                   .arrays = 3,
                   .cache_resident = true},
          .make = [](void* memory, std::size_t bytes,
                     int) { return make_triad(memory, std::min(bytes, cache_resident_bytes()), false); }},
    Entry{.info = {.name = "triad_llc",
                   .description = "triad on arrays that stay in the last-level cache (its working set says how large)",
                   .rate_unit = "MB/s",
                   .flops = 2,
                   .bytes_read = 16,
                   .bytes_written = 8,
                   .arrays = 3,
                   .cache_resident = true,
                   .shared_cache = true},
          .make = [](void* memory, std::size_t bytes, int) { return make_triad(memory, bytes, false); }},
    Entry{.info = {.name = "polling",
                   .description =
                       "worker that polls a shared list of tasks, at most cursor nops apart; an item is a poll",
                   .rate_unit = "M/s",
                   .uses_cursor = true,
                   .pool = true},
          .make = [](void*, std::size_t, int cursor) { return make_polling(cursor); }},
    Entry{.info = {.name = "paused",
                   .description = "worker of a paused pool of tasks, blocked; an item is a wait of 5 ms",
                   .rate_unit = "M/s",
                   .pool = true},
          .make = [](void*, std::size_t, int) { return make_paused(); }},
};

constexpr auto kInfos = [] {
  std::array<KernelInfo, kEntries.size()> infos{};
  std::transform(kEntries.begin(), kEntries.end(), infos.begin(), [](const Entry& entry) { return entry.info; });
  return infos;
}();

std::string names() {
  std::string all;
  for (const KernelInfo& info : kInfos) all.append(all.empty() ? "" : ", ").append(info.name);
  return all;
}

}  // namespace

std::span<const KernelInfo> kernels() { return kInfos; }

const KernelInfo* find_kernel(std::string_view name) {
  const auto entry =
      std::find_if(kInfos.begin(), kInfos.end(), [&](const KernelInfo& info) { return info.name == name; });
  return entry == kInfos.end() ? nullptr : &*entry;
}

std::string vector_target() { return loops::target_name(); }
std::size_t vector_bytes() { return loops::vector_bytes(); }

std::unique_ptr<Worker> make_worker(std::string_view kernel, void* memory, std::size_t bytes, int cursor) {
  const KernelInfo* info = find_kernel(kernel);
  if (info == nullptr) {
    throw std::invalid_argument("kernel '" + std::string(kernel) + "' does not exist; kernels: " + names());
  }
  if (cursor < 1) {
    throw std::invalid_argument("cursor " + std::to_string(cursor) + " is below 1: an item is processed once at least");
  }
  if (info->arrays > 0 && reinterpret_cast<std::uintptr_t>(memory) % 64 != 0) {
    throw std::invalid_argument("the memory of kernel '" + std::string(kernel) +
                                "' does not start at a multiple of 64 B");
  }
  return kEntries[static_cast<std::size_t>(info - kInfos.data())].make(memory, bytes, cursor);
}

}  // namespace elbowroom
