// Caches of several cores: set-associative, least recently used line replaced, lines allocated by reads and writes.
//
// What it assumes: a miss fills every level it went through and a hit refreshes only the level that answered, so that the
// levels are neither inclusive nor exclusive (cachegrind's rule, too); a write takes the line away from every cache that
// the writer does not go through; nothing is prefetched; a line's set follows from its virtual address, since user space
// does not know physical ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "machine/machine.hpp"

namespace elbowroom {

struct CacheShape {
  int level = 1;   // 1 is the nearest
  int number = 0;  // which of its level
  std::uint64_t bytes = 0;
  std::uint64_t ways = 1;
  std::uint64_t sets = 1;  // any number, not only powers of two
};

// Caches and who goes through them. Cores are numbered as the model wants them: 0 the sender's, 1 the receiver's, then
// those of bystanders.
struct HierarchyShape {
  std::uint64_t line = 64;  // bytes, of all caches
  std::vector<CacheShape> caches;
  std::vector<std::vector<std::size_t>> paths;  // of each core: indices of its caches, nearest first
  std::vector<std::string> assumptions;         // what the machine does not tell, in words
};

// From what hwloc tells of each core's data caches, nearest first. Caches of equal level and number are one, shared. Throws
// std::invalid_argument when a core has none.
HierarchyShape shape_of(const std::vector<std::vector<CacheInfo>>& cores);
// Of cores of this machine, by the operating system's numbers. Throws std::invalid_argument naming the core.
HierarchyShape shape_of_cores(const std::vector<int>& cores);

nlohmann::json hierarchy_record(const HierarchyShape& shape);

// Follows every access: the general rule, that the fast way of model.hpp is tested against.
class Hierarchy {
 public:
  explicit Hierarchy(HierarchyShape shape);

  void access(std::size_t core, std::uint64_t address, std::uint64_t bytes, bool write);
  // Misses of a core at one place of its path (0: nearest) since the last reset.
  std::uint64_t misses(std::size_t core, std::size_t place) const { return misses_[core][place]; }
  void reset_counts();
  const HierarchyShape& shape() const { return shape_; }

 private:
  using Set = std::vector<std::uint64_t>;  // lines, most recently used first
  bool touch(std::size_t cache, std::uint64_t line);
  void invalidate(std::size_t core, std::uint64_t line);

  HierarchyShape shape_;
  std::vector<std::unordered_map<std::uint64_t, Set>> sets_;  // of each cache, those ever used
  std::vector<std::vector<std::uint64_t>> misses_;
};

// Numbers of the lines that hold `bytes` from `address` on; none of 0 bytes.
struct Lines {
  std::uint64_t first;
  std::uint64_t count;
};
Lines lines_of(std::uint64_t address, std::uint64_t bytes, std::uint64_t line);

}  // namespace elbowroom
