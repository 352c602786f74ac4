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
#include <mutex>
#include <optional>
#include <string_view>

#include "profile/recording.hpp"

namespace elbowroom::profile {
namespace {

constexpr std::size_t kMostCpus = 16384;
using Mask = std::array<unsigned long, kMostCpus / (8 * sizeof(unsigned long))>;

using Text = std::array<char, 1024>;

// What a file of a thread says; empty where it cannot be read.
std::string_view text_of(std::int32_t thread, const char* name, Text& text) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/task/%d/%s", thread, name);
  const int file = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return {};
  }
  const ssize_t size = read(file, text.data(), text.size());
  close(file);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

// The word at a place of a text, as a number.
template <typename Number>
std::optional<Number> word(std::string_view text, int place) {
  for (; place > 0; --place) {
    text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
  }
  Number number{};
  const bool is_number = std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
  return is_number ? std::optional(number) : std::nullopt;
}

// The core that a thread ran on last: `processor`, the 39th word of its stat. The second one is a name with brackets around it,
// which may have blanks and brackets itself.
std::int32_t core_of(std::int32_t thread) {
  constexpr int kAfterName = 37;
  Text text;
  const std::string_view all = text_of(thread, "stat", text);
  const std::size_t name = all.rfind(')');
  return name == std::string_view::npos ? -1 : word<std::int32_t>(all.substr(name), kAfterName).value_or(-1);
}

// The NUMA node of a core; -1 where the kernel has none.
std::int32_t node_of(std::int32_t cpu) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/sys/devices/system/cpu/cpu%d", cpu);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.data()), closedir);
  while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    std::int32_t node = -1;
    if (name.starts_with("node") &&
        std::from_chars(name.data() + 4, name.data() + name.size(), node).ec == std::errc()) {
      return node;
    }
  }
  return -1;
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

// What the scheduler has given the thread so far; the same numbers as before where the kernel does not count.
void set_times(ThreadPlace& place) {
  Text text;
  const std::string_view numbers = text_of(place.thread, "schedstat", text);
  if (!numbers.empty()) {
    place.cpu_ns = std::max(place.cpu_ns, word<std::uint64_t>(numbers, 0).value_or(0));
    place.waited_ns = std::max(place.waited_ns, word<std::uint64_t>(numbers, 1).value_or(0));
  }
}

void set_core(ThreadPlace& place) {
  const std::int32_t core = core_of(place.thread);
  if (core >= 0 && core != place.cpu) {
    place.migrations += place.cpu >= 0 ? 1 : 0;
    place.cpu = core;
    place.node = node_of(core);
  }
}

}  // namespace

std::size_t place_of_thread(elbow_profile& profile, std::int32_t thread) {
  const std::lock_guard adding(profile.adding_threads);
  Header& header = *profile.file.header();
  ThreadPlace* const first = profile.file.threads();
  ThreadPlace* const end = first + header.threads;
  ThreadPlace* const place = std::find_if(first, end, [&](const ThreadPlace& one) { return one.thread == thread; });
  if (place == end && header.threads < header.thread_room) {
    place->thread = thread;
    place->cpu = -1;
    place->node = -1;
    // A reader sees no place that is not whole.
    std::atomic_ref(header.threads).store(header.threads + 1, std::memory_order_release);
  }
  return static_cast<std::size_t>(place - first);
}

void look_at_threads(elbow_profile& profile) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/task"), closedir);
  while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    std::int32_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    Mask mask{};
    if (thread <= 0 || sched_getaffinity(thread, sizeof mask, reinterpret_cast<cpu_set_t*>(mask.data())) != 0) {
      continue;
    }
    const std::size_t place = place_of_thread(profile, thread);
    if (place == kMostThreads) {
      return;
    }
    set_cores(profile.file.threads()[place], mask);
    set_times(profile.file.threads()[place]);
    set_core(profile.file.threads()[place]);
  }
}

}  // namespace elbowroom::profile
