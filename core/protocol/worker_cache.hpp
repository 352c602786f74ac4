// Computing jobs with their memory, kept from one request to the next: touching a gigabyte costs more than measuring.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "machine/machine.hpp"
#include "protocol/pool.hpp"

namespace elbowroom {

struct WorkerKey {
  std::string kernel;
  int cursor;
  std::size_t bytes;  // working set; 0 for register-only kernels
  int core;
  int node;
  bool operator==(const WorkerKey&) const = default;
};

struct CachedWorker {
  WorkerKey key;
  Arena arena;
  ComputingJob job;
};

class WorkerCache {
 public:
  // Keeps at most `cap` bytes on each node, or what the current request needs if that is more.
  explicit WorkerCache(std::size_t cap) : cap_(cap) {}

  // One worker per key, all of them together on the pool's threads (keys[i] on the i-th), first touched there. The memory
  // of workers not used for longest is given to new ones of the same core and node, or back. Pointers stay valid
  // until the next call.
  std::vector<CachedWorker*> get(const std::vector<WorkerKey>& keys, ComputingPool& pool);

  std::size_t bytes_on(int node) const;

 private:
  CachedWorker* find(const WorkerKey& key);
  Arena memory_for(const WorkerKey& key, const std::vector<WorkerKey>& wanted);
  void make_room(std::size_t bytes, int node, const std::vector<WorkerKey>& wanted);

  std::size_t cap_;
  std::list<CachedWorker> workers_;  // most recently used first
};

}  // namespace elbowroom
