// Bytes that went to and from memory, by the kernel's resctrl (Intel MBM, AMD QoS): the whole machine's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/system_files.hpp"

namespace elbowroom {

struct MemoryBytes {
  std::uint64_t total = 0;
  std::uint64_t local = 0;  // to the memory of the cache's own node
};

// Counted since resctrl was mounted, summed over all last-level caches; nothing where one does not tell.
std::optional<MemoryBytes> memory_bytes(const SystemRoots& roots = {});

// Why it cannot be read; empty when it can.
std::string bandwidth_refusal(const SystemRoots& roots = {});

}  // namespace elbowroom
