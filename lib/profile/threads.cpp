#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string_view>

#include "profile/recording.hpp"

namespace elbowroom::profile {
namespace {

constexpr std::size_t kMostCpus = 16384;
using Mask = std::array<unsigned long, kMostCpus / (8 * sizeof(unsigned long))>;

// CPU time of a thread in ns, the first number of schedstat; 0 where the kernel does not count it.
std::uint64_t time_of(std::int32_t thread) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "/proc/self/task/%d/schedstat", thread);
  const int file = open(text.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return 0;
  }
  const ssize_t size = read(file, text.data(), text.size());
  close(file);
  std::uint64_t ns = 0;
  std::from_chars(text.data(), text.data() + std::max<ssize_t>(size, 0), ns);
  return ns;
}

// The cores in FNV-1a of 64 bits: threads with the same number may run on the same ones.
void set_cores(ThreadPlace& place, const Mask& mask) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  place.cpus = 0;
  place.mask = 0xCBF29CE484222325U;
  for (std::size_t word = 0; word < mask.size(); ++word) {
    for (unsigned long left = mask[word]; left != 0; left &= left - 1) {
      const std::size_t cpu = word * kBits + static_cast<std::size_t>(std::countr_zero(left));
      place.first = place.cpus == 0 ? static_cast<std::uint32_t>(cpu) : place.first;
      place.last = static_cast<std::uint32_t>(cpu);
      place.cpus += 1;
      place.mask = (place.mask ^ cpu) * 0x100000001B3U;
    }
  }
}

// NULL: there is no room for another thread.
ThreadPlace* place_of(Header& header, std::int32_t thread) {
  ThreadPlace* const end = header.places + header.threads;
  ThreadPlace* const found =
      std::find_if(header.places, end, [&](const ThreadPlace& one) { return one.thread == thread; });
  return found < header.places + kMostThreads ? found : nullptr;
}

}  // namespace

void look_at_threads(Header& header) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/task"), closedir);
  while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    std::int32_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    Mask mask{};
    if (thread <= 0 || sched_getaffinity(thread, sizeof mask, reinterpret_cast<cpu_set_t*>(mask.data())) != 0) {
      continue;
    }
    ThreadPlace* const place = place_of(header, thread);
    if (place == nullptr) {
      return;
    }
    place->thread = thread;
    set_cores(*place, mask);
    place->cpu_ns = std::max(place->cpu_ns, time_of(thread));
    const auto count = static_cast<std::uint32_t>(place - header.places) + 1;
    // A reader sees no place that is not whole.
    std::atomic_ref(header.threads).store(std::max(header.threads, count), std::memory_order_release);
  }
}

}  // namespace elbowroom::profile
