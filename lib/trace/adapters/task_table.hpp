// Which number, and which type of events, a task in memory has. Tasks are found by their address, which is used again for
// another task once one is freed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "elbowroom/trace.h"

namespace elbowroom::trace {

enum class TaskState : std::uint8_t { kNamed, kSubmitted, kEnded };  // kNamed: something depends on it already

struct KnownTask {
  std::uint64_t number = 0;
  const elbow_trace_type* type = nullptr;
  TaskState state = TaskState::kNamed;
};

// Locks are held for a look-up only, and threads that look up different tasks seldom meet.
class TaskTable {
 public:
  std::optional<KnownTask> find(const void* task) {
    Shard& shard = shard_of(task);
    const std::lock_guard lock(shard.mutex);
    const auto entry = shard.tasks.find(task);
    return entry == shard.tasks.end() ? std::nullopt : std::optional(entry->second);
  }

  // The task is submitted: with the number that it was named by, else one that `next` gives.
  template <typename Next>
  std::uint64_t submit(const void* task, const elbow_trace_type* type, Next next) {
    Shard& shard = shard_of(task);
    const std::lock_guard lock(shard.mutex);
    KnownTask& known = shard.tasks[task];
    if (known.number == 0 || known.state != TaskState::kNamed) {
      known.number = next();
    }
    known.type = type;
    known.state = TaskState::kSubmitted;
    return known.number;
  }

  void set(const void* task, const KnownTask& known) {
    Shard& shard = shard_of(task);
    const std::lock_guard lock(shard.mutex);
    shard.tasks[task] = known;
  }

  // Where it is still that task: its end.
  void end(const void* task, std::uint64_t number) {
    Shard& shard = shard_of(task);
    const std::lock_guard lock(shard.mutex);
    const auto entry = shard.tasks.find(task);
    if (entry != shard.tasks.end() && entry->second.number == number) {
      entry->second.state = TaskState::kEnded;
    }
  }

  void clear() {
    for (Shard& shard : shards_) {
      const std::lock_guard lock(shard.mutex);
      shard.tasks.clear();
    }
  }

 private:
  static constexpr std::size_t kShards = 64;
  struct alignas(64) Shard {
    std::mutex mutex;
    std::unordered_map<const void*, KnownTask> tasks;
  };

  Shard& shard_of(const void* task) {
    // Tasks lie some hundred bytes apart: a product spreads them.
    return shards_[(reinterpret_cast<std::uintptr_t>(task) * 0x9E3779B97F4A7C15ULL) >> 58];
  }

  std::array<Shard, kShards> shards_;
};

}  // namespace elbowroom::trace
