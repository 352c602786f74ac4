#include "kernels/kernel.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

#include "kernels/array_workers.hpp"
#include "kernels/loops.hpp"
#include "kernels/pool_workers.hpp"
#include "kernels/register_workers.hpp"

namespace elbowroom {
namespace {

using loops::Width;

struct Entry {
  KernelInfo info;
  std::unique_ptr<Worker> (*make)(void* memory, std::size_t bytes, int cursor);
};

// Bus bytes count a plain store twice: the line is read before it is written (METHOD.md, rule 9). A cache-resident
// kernel moves nothing over the memory bus; the lines that workers of a pool pass from core to core are not counted.
// Fields: name, description, unit, flops, read, written, bus, arrays, non-temporal, cursor, cache-resident.
constexpr std::array kEntries{
    Entry{{"prime", "naive prime count, integer registers only; an item is a candidate", "M/s", 0, 0, 0, 0, 0, false,
           false, false},
          [](void*, std::size_t, int) { return make_prime(); }},
    Entry{{"fma", "fused multiply-add peak, widest vectors; an item is one double", "Mflop/s", 2, 0, 0, 0, 0, false,
           false, false},
          [](void*, std::size_t, int) { return make_fma(Width::widest); }},
    Entry{{"fma128", "fused multiply-add peak, vectors of 128 bits", "Mflop/s", 2, 0, 0, 0, 0, false, false, false},
          [](void*, std::size_t, int) { return make_fma(Width::bits128); }},
    Entry{{"fma256", "fused multiply-add peak, vectors of 256 bits", "Mflop/s", 2, 0, 0, 0, 0, false, false, false},
          [](void*, std::size_t, int) { return make_fma(Width::bits256); }},
    Entry{{"fma512", "fused multiply-add peak, vectors of 512 bits", "Mflop/s", 2, 0, 0, 0, 0, false, false, false},
          [](void*, std::size_t, int) { return make_fma(Width::bits512); }},
    Entry{{"memset_nt", "a[i] = s, non-temporal stores", "MB/s", 0, 0, 8, 8, 1, true, false, false},
          [](void* memory, std::size_t bytes, int) { return make_memset_nt(memory, bytes); }},
    Entry{{"load", "sum of a[i], read only", "MB/s", 1, 8, 0, 8, 1, false, false, false},
          [](void* memory, std::size_t bytes, int) { return make_load(memory, bytes); }},
    Entry{{"copy", "c[i] = a[i], plain stores", "MB/s", 0, 8, 8, 24, 2, false, false, false},
          [](void* memory, std::size_t bytes, int) { return make_copy(memory, bytes, false); }},
    Entry{{"copy_nt", "c[i] = a[i], non-temporal stores", "MB/s", 0, 8, 8, 16, 2, true, false, false},
          [](void* memory, std::size_t bytes, int) { return make_copy(memory, bytes, true); }},
    Entry{{"triad", "c[i] = a[i] + s * b[i], plain stores", "MB/s", 2, 16, 8, 32, 3, false, false, false},
          [](void* memory, std::size_t bytes, int) { return make_triad(memory, bytes, false); }},
    Entry{{"triad_nt", "c[i] = a[i] + s * b[i], non-temporal stores", "MB/s", 2, 16, 8, 24, 3, true, false, false},
          [](void* memory, std::size_t bytes, int) { return make_triad(memory, bytes, true); }},
    Entry{{"triad_cursor", "triad repeated cursor times on each item before the next", "MB/s", 2, 16, 8, 32, 3, false,
           true, false},
          [](void* memory, std::size_t bytes, int cursor) { return make_triad_cursor(memory, bytes, cursor); }},
    Entry{{"load_cache", "load on half of the core's L2 cache", "MB/s", 1, 8, 0, 0, 1, false, false, true},
          [](void* memory, std::size_t bytes, int) {
            return make_load(memory, std::min(bytes, cache_resident_bytes()));
          }},
    Entry{{"triad_cache", "triad on half of the core's L2 cache", "MB/s", 2, 16, 8, 0, 3, false, false, true},
          [](void* memory, std::size_t bytes, int) {
            return make_triad(memory, std::min(bytes, cache_resident_bytes()), false);
          }},
    Entry{{"triad_llc", "triad on arrays that stay in the last-level cache (its working set says how large)", "MB/s", 2,
           16, 8, 0, 3, false, false, true},
          [](void* memory, std::size_t bytes, int) { return make_triad(memory, bytes, false); }},
    Entry{{"polling", "worker that polls a shared list of tasks, at most cursor nops apart; an item is a poll", "M/s",
           0, 0, 0, 0, 0, false, true, false},
          [](void*, std::size_t, int cursor) { return make_polling(cursor); }},
    Entry{{"paused", "worker of a paused pool of tasks, blocked; an item is a wait of 5 ms", "M/s", 0, 0, 0, 0, 0,
           false, false, false},
          [](void*, std::size_t, int) { return make_paused(); }},
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
  const auto found =
      std::find_if(kInfos.begin(), kInfos.end(), [&](const KernelInfo& info) { return info.name == name; });
  return found == kInfos.end() ? nullptr : &*found;
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
