// Host memory on a NUMA node, pinned.
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "gpu/device.hpp"

namespace elbowroom::gpu {
namespace {

constexpr std::size_t kLooks = 256;  // pages looked at: enough for 1 % of misplaced pages to show
constexpr int kMostNodes = 1024;

// Strictly, so that a full node is an error and not other memory.
void bind(void* data, std::size_t bytes, int node) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  unsigned long mask[kMostNodes / kBits] = {};
  if (node >= kMostNodes) throw std::runtime_error("NUMA node " + std::to_string(node) + " does not exist");
  mask[static_cast<std::size_t>(node) / kBits] = 1UL << (static_cast<std::size_t>(node) % kBits);
  if (syscall(SYS_mbind, data, bytes, MPOL_BIND, mask, kMostNodes + 1, 0U) == 0) return;
  const int reason = errno;
  // Kernels without NUMA, and containers that forbid the call, have one node only or none to choose.
  if (node == 0 && (reason == ENOSYS || reason == EPERM)) return;
  throw std::runtime_error("memory cannot be bound to NUMA node " + std::to_string(node) + ": " +
                           std::strerror(reason));
}

}  // namespace

PinnedMemory::PinnedMemory(const Context& context, std::size_t bytes, int node)
    : driver_(context.driver()), size_(bytes) {
  data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data_ == MAP_FAILED) {
    throw std::runtime_error(std::to_string(bytes) + " bytes of host memory: " + std::strerror(errno));
  }
  try {
    if (node >= 0) bind(data_, bytes, node);
    std::memset(data_, 1, bytes);  // touched before it is pinned, on the node
    driver_.check(driver_.cuMemHostRegister(data_, bytes, kHostRegisterPortable | kHostRegisterDeviceMap),
                  "pinning " + std::to_string(bytes) + " bytes of host memory");
  } catch (...) {
    unmap();
    throw;
  }
  const Result mapped = driver_.cuMemHostGetDevicePointer(&address_, data_, 0);
  if (mapped != kSuccess) {
    driver_.cuMemHostUnregister(data_);
    unmap();
  }
  driver_.check(mapped, "the device's address of pinned memory");
}

PinnedMemory::~PinnedMemory() {
  if (driver_.abandoned()) return;
  driver_.cuMemHostUnregister(data_);
  unmap();
}

void PinnedMemory::unmap() { munmap(data_, size_); }

double PinnedMemory::share_on(int node) const {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t pages = (size_ + page - 1) / page;
  const std::size_t looks = std::min(pages, kLooks);
  std::vector<void*> addresses(looks);
  std::vector<int> nodes(looks, -1);
  for (std::size_t i = 0; i < looks; ++i) addresses[i] = static_cast<char*>(data_) + i * pages / looks * page;
  if (syscall(SYS_move_pages, 0, looks, addresses.data(), nullptr, nodes.data(), 0) != 0) return -1;
  return static_cast<double>(std::count(nodes.begin(), nodes.end(), node)) / static_cast<double>(looks);
}

}  // namespace elbowroom::gpu
