// Arena: memory bound to a node, and the check that its pages are where they were wanted.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "base/system_files.hpp"
#include "machine/machine.hpp"
#include "machine/pages.hpp"

namespace elbowroom {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kSampledPages = 256;  // enough for 1 % of misplaced pages to show, cheap enough for every sample

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

void check_request(const Machine& machine, std::size_t bytes, int node) {
  if (machine.node(node) == nullptr) {
    std::vector<int> numbers;
    for (const auto& one : machine.nodes()) {
      numbers.push_back(one.number);
    }
    throw std::runtime_error(
        fmt::format("NUMA node {} does not exist; nodes here: {}", node, format_cpu_list(std::move(numbers))));
  }
  if (bytes == 0) {
    throw std::runtime_error(fmt::format("0 bytes requested on NUMA node {}; request at least 1", node));
  }
  const auto available = machine.available_memory(node);
  if (bytes > available) {
    throw std::runtime_error(
        fmt::format("{} bytes requested on NUMA node {}, which has {} available; take a smaller "
                    "working set or fewer cores",
                    bytes, node, available));
  }
}

// The mapping is longer than asked for on both sides: the start is moved to a 2 MiB boundary and one page without
// access stays behind the end, so that the kernel does not merge neighbouring arenas into one line of smaps.
void* map_aligned(std::size_t bytes, int node) {
  const std::size_t length = bytes + kHugePage + page_size();
  void* raw = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) {
    throw std::runtime_error(
        fmt::format("{} bytes cannot be mapped for NUMA node {}: {}", bytes, node, std::strerror(errno)));
  }
  const auto start = reinterpret_cast<std::uintptr_t>(raw);
  const auto aligned = rounded_up(start, kHugePage);
  const auto end = aligned + bytes + page_size();
  if (aligned > start) {
    munmap(raw, aligned - start);
  }
  if (start + length > end) {
    munmap(reinterpret_cast<void*>(end), start + length - end);
  }
  void* data = reinterpret_cast<void*>(aligned);
  if (mprotect(data, bytes, PROT_READ | PROT_WRITE) != 0) {
    const int cause = errno;
    munmap(data, bytes + page_size());
    throw std::runtime_error(
        fmt::format("{} bytes cannot be made writable for NUMA node {}: {}", bytes, node, std::strerror(cause)));
  }
  return data;
}

}  // namespace

PageReport count_pages(const std::vector<int>& status, int wanted) {
  PageReport report;
  report.wanted = wanted;
  report.page_size = page_size();
  std::size_t right = 0;
  for (const int node : status) {
    if (node >= 0) {
      ++report.looked_at;
      right += node == wanted ? 1 : 0;
    }
  }
  if (report.looked_at == 0) {
    report.unknown = "no page of it was touched";
  } else {
    report.share = static_cast<double>(right) / static_cast<double>(report.looked_at);
  }
  return report;
}

double huge_share_in(std::string_view smaps, std::uint64_t start, std::uint64_t end) {
  std::uint64_t resident = 0;
  std::uint64_t huge = 0;
  bool inside = false;
  std::istringstream lines{std::string(smaps)};
  for (std::string line; std::getline(lines, line);) {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " ", &first, &last) == 2) {
      inside = first < end && last > start;
    } else if (inside) {
      std::uint64_t kibibytes = 0;
      if (std::sscanf(line.c_str(), "Rss: %" SCNu64, &kibibytes) == 1) {
        resident += kibibytes;
      } else if (std::sscanf(line.c_str(), "AnonHugePages: %" SCNu64, &kibibytes) == 1) {
        huge += kibibytes;
      }
    }
  }
  return resident == 0 ? -1 : static_cast<double>(huge) / static_cast<double>(resident);
}

Arena::Arena(std::size_t bytes, int node) {
  const auto& machine = Machine::here();
  check_request(machine, bytes, node);
  const std::size_t size = rounded_up(bytes, page_size());
  data_ = map_aligned(size, node);
  size_ = size;
  node_ = node;
  // Refused where transparent huge pages are compiled out; huge_share tells what came of it.
  madvise(data_, size_, MADV_HUGEPAGE);
  unbound_ = machine.bind_memory(data_, size_, node);
  if (!unbound_.empty() && machine.nodes().size() > 1) {
    munmap(data_, size_ + page_size());
    throw std::runtime_error(
        fmt::format("{} bytes cannot be bound to NUMA node {}: {}; allow the mbind system call "
                    "(containers: --cap-add SYS_NICE) and that node in the cpuset",
                    bytes, node, unbound_));
  }
}

Arena::~Arena() {
  if (data_ != nullptr) {
    munmap(data_, size_ + page_size());
  }
}

Arena::Arena(Arena&& other) noexcept { *this = std::move(other); }

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(node_, other.node_);
  std::swap(unbound_, other.unbound_);
  return *this;
}

PageReport Arena::verify(std::size_t bytes_used) const {
  PageReport report;
  report.wanted = node_;
  report.page_size = page_size();
  const std::size_t used = std::min(bytes_used, size_);
  const std::size_t count = rounded_up(used, page_size()) / page_size();
  if (count == 0) {
    report.unknown = "no memory was used";
    return report;
  }
  const std::size_t sampled = std::min(count, kSampledPages);
  std::vector<void*> pages(sampled);
  for (std::size_t index = 0; index < sampled; ++index) {
    // Spread over the range, its first and last page included.
    const std::size_t page = sampled == 1 ? 0 : index * (count - 1) / (sampled - 1);
    pages[index] = static_cast<char*>(data_) + page * page_size();
  }
  std::vector<int> status(sampled, -1);
  if (syscall(SYS_move_pages, 0, sampled, pages.data(), nullptr, status.data(), 0) != 0) {
    report.unknown = fmt::format("move_pages: {}{}", std::strerror(errno),
                                 unbound_.empty() ? "" : "; and the pages could not be bound: " + unbound_);
  } else {
    report = count_pages(status, node_);
  }
  const auto start = reinterpret_cast<std::uintptr_t>(data_);
  report.huge_share = huge_share_in(read_text("/proc/self/smaps").value_or(""), start, start + used);
  return report;
}

}  // namespace elbowroom
