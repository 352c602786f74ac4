// What the control group of this process allows: processor time, memory, cores; versions 1 and 2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/system_files.hpp"

namespace elbowroom {

// A limit that is absent is not set (unlimited) when `unknown` is empty, and unknown otherwise.
struct Cgroup {
  int version = 0;                           // 1, 2; 0 unknown
  std::string path;                          // below the mount point, of the memory controller
  std::optional<double> cpus;                // quota / period: cores' worth of time
  std::uint64_t periods = 0;                 // of the group with this quota, since it exists
  std::uint64_t throttled_periods = 0;       // of these: the quota was used up
  std::optional<std::uint64_t> memory;       // bytes
  std::optional<std::uint64_t> memory_used;  // bytes, page cache included
  std::uint64_t reclaimable = 0;             // part of memory_used that is inactive page cache
  std::string cpuset;                        // "" when the controller does not say
  std::string unknown;
};

// The tightest limits on the way from this process' group to the root.
Cgroup read_cgroup(const SystemRoots& roots = {});

}  // namespace elbowroom
