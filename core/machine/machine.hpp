// The machine through hwloc: topology, binding, allocation on a node, verification of pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace elbowroom {

struct CoreInfo {
  int number;  // operating system's number of the first processing unit
  int node;    // operating system's number of the NUMA node; -1 when hwloc knows none
  int package;
  std::vector<int> pus;  // all its processing units
  bool allowed;          // inside this process' cpuset
};

struct NodeInfo {
  int number;
  std::uint64_t memory;     // bytes as hwloc says
  std::uint64_t available;  // bytes free or reclaimable when the topology was loaded, as the kernel says
};

struct CacheInfo {
  int level;   // 1 is the nearest
  int number;  // which of its level, hwloc's logical number
  std::uint64_t bytes;
  int associativity;   // ways; -1 fully associative, 0 unknown
  std::uint64_t line;  // bytes; 0 unknown
};

struct PageReport {
  int wanted = -1;   // node asked for
  double share = 0;  // pages on it / pages looked at
  std::size_t looked_at = 0;
  std::size_t page_size = 0;
  double huge_share = -1;  // share of the range backed by huge pages; < 0 unknown
  std::string unknown;     // why the placement could not be read; empty when it was
};

class Machine {
 public:
  static const Machine& here();  // loads the topology once; throws std::runtime_error when hwloc cannot

  const std::vector<CoreInfo>& cores() const;
  const std::vector<NodeInfo>& nodes() const;
  const CoreInfo* core(int number) const;  // nullptr when there is none; any processing unit names its core
  const NodeInfo* node(int number) const;
  std::size_t last_level_cache() const;           // bytes; 0 unknown
  std::vector<CacheInfo> caches(int core) const;  // data and unified caches of a core, nearest first; empty: unknown
  std::string hwloc_version() const;              // of the library loaded at run time
  // Whether this hwloc sees PCI devices: it found some, or the kernel has none either. False for a libhwloc built
  // without PCI support (as MPI wheels carry) on a machine whose /sys/bus/pci has devices.
  bool sees_pci() const;
  std::uint64_t available_memory(int node) const;  // bytes now: the node's, within this process' cgroup limit
  void write_xml(const std::string& path) const;   // "-" is stdout; throws std::runtime_error

  // Binds to the core's first processing unit; throws std::runtime_error naming core and cause.
  void bind_this_thread(int core_number) const;
  // Binds untouched, page-aligned memory to a node, strictly. Returns "" or why it could not be bound.
  std::string bind_memory(void* address, std::size_t bytes, int node) const;

  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

 private:
  Machine();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Memory bound to one NUMA node, 2 MiB aligned, huge pages advised; untouched until its user touches it.
class Arena {
 public:
  Arena() = default;
  Arena(std::size_t bytes, int node);  // throws std::runtime_error: node, bytes, and what is available
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;

  void* data() const { return data_; }
  std::size_t size() const { return size_; }
  int node() const { return node_; }
  PageReport verify(std::size_t bytes_used) const;  // move_pages on a sample (docs/design/method.md, rule 5)

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
  int node_ = -1;
  std::string unbound_;  // why a one-node machine refused the binding (its pages land on the node all the same)
};

}  // namespace elbowroom
