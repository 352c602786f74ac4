// StarPU's tasks as a trace has them: their numbers, types, names and what they wait for.
#pragma once

#include <starpu.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "elbowroom/trace.h"
#include "trace/adapters/access_order.hpp"

namespace elbowroom::trace {
// Which number, and which type of events, a task in memory has. Tasks are found by their address, which is used again for
// another task once one is freed.
enum class TaskState : std::uint8_t { kNamed, kSubmitted, kEnded };  // kNamed: something depends on it already

struct KnownTask {
  std::uint64_t number = 0;
  const elbow_trace_type* type = nullptr;
  TaskState state = TaskState::kNamed;
  int pushed_by = -1;  // the worker that gave it to the scheduler; below 0: another thread
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

  // Gave the task to the scheduler; its number, 0 where it was not submitted.
  std::uint64_t push(const void* task, int worker) {
    Shard& shard = shard_of(task);
    const std::lock_guard lock(shard.mutex);
    const auto entry = shard.tasks.find(task);
    if (entry == shard.tasks.end() || entry->second.state != TaskState::kSubmitted) return 0;
    entry->second.pushed_by = worker;
    return entry->second.number;
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

// What tasks wait for by tags (starpu_tag_declare_deps), which may be said before the tasks are there. Tags without a task
// stand for no task: nothing is known of whom they wait for.
class TagOrder {
 public:
  using Waits = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // (task, task that waits for it)

  // Tag `waiting` waits for `tag`. Appends what is known by it.
  void declare(std::uint64_t waiting, std::uint64_t tag, Waits& waits) {
    const std::lock_guard lock(mutex_);
    tags_[waiting].before.push_back(tag);
    tags_[tag].after.push_back(waiting);
    if (tags_[waiting].task != 0 && tags_[tag].task != 0) {
      waits.emplace_back(tags_[tag].task, tags_[waiting].task);
    }
  }

  // Task `number` has the tag.
  void task(std::uint64_t tag, std::uint64_t number, Waits& waits) {
    const std::lock_guard lock(mutex_);
    Tag& own = tags_[tag];
    own.task = number;
    for (const std::uint64_t other : own.before) {
      if (tags_[other].task != 0) {
        waits.emplace_back(tags_[other].task, number);
      }
    }
    for (const std::uint64_t other : own.after) {
      if (tags_[other].task != 0) {
        waits.emplace_back(number, tags_[other].task);
      }
    }
  }

  void forget(std::uint64_t tag) {
    const std::lock_guard lock(mutex_);
    tags_.erase(tag);
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    tags_.clear();
  }

 private:
  struct Tag {
    std::uint64_t task = 0;
    std::vector<std::uint64_t> before;
    std::vector<std::uint64_t> after;
  };
  std::mutex mutex_;
  // Nodes keep their places when others are added.
  std::unordered_map<std::uint64_t, Tag> tags_;
};

// Numbers of data handles, from 1; a handle's address is used again once it is unregistered.
class DataTable {
 public:
  std::uint64_t number(const void* handle) {
    const std::lock_guard lock(mutex_);
    std::uint64_t& number = numbers_[handle];
    if (number == 0) number = ++last_;
    return number;
  }

  void forget(const void* handle) {
    const std::lock_guard lock(mutex_);
    numbers_.erase(handle);
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    numbers_.clear();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, std::uint64_t> numbers_;
  std::uint64_t last_ = 0;
};

// The number of a category that ELBOW_TRACE_CATEGORIES names, so that it is wanted in spite of its many events; else below 0.
int named_category(const char* name);

// The function of that name behind this library's own, in StarPU.
void* behind(const char* name);

template <typename F>
F* behind(F* /* its signature */, const char* name) {
  return reinterpret_cast<F*>(behind(name));
}

// StarPU's function, looked up once at each place.
#define ELBOW_STARPU(name)                                                \
  ([]() {                                                                 \
    static auto* const symbol = elbowroom::trace::behind(&::name, #name); \
    return symbol;                                                        \
  }())

class StarpuTasks {
 public:
  // Of the process; never destroyed, since workers may outlive main.
  static StarpuTasks& all();

  // Once, when StarPU starts: categories and types.
  bool start();
  bool recording() const { return recording_; }

  // Before StarPU gets the task: its number, its dependencies, and what is put around its functions.
  std::uint64_t submit(starpu_task* task);
  void refused(std::uint64_t number) const { elbow_trace_event(refused_, 0, number, 0); }
  void duplicate(const starpu_task* task, const starpu_task* copy);
  // `task` waits for the others.
  void declare(starpu_task* task, unsigned count, starpu_task* const others[]);
  void declare_tags(starpu_tag_t tag, unsigned count, const starpu_tag_t others[]);
  void forget_tag(starpu_tag_t tag) { tags_.forget(tag); }
  void forget_data(starpu_data_handle_t handle);
  void reduction(const starpu_codelet* reduce, const starpu_codelet* initialise);
  void forget_all();

  // Tasks that were submitted; of others, the number is 0.
  std::optional<KnownTask> known(const starpu_task* task);
  std::uint64_t push(const starpu_task* task, int worker) { return table_.push(task, worker); }

  std::uint64_t data_number(starpu_data_handle_t handle) { return data_.number(handle); }
  void registered(starpu_data_handle_t handle, int node);
  void name_data(starpu_data_handle_t handle, const char* name);

  // Around a codelet's function.
  void run(void (*function)(void**, void*), void** buffers, void* argument);
  // A task is ready; one without a function is done with it.
  void ready(std::uint64_t number) const { elbow_trace_event(ready_, 0, number, 0); }
  void passed(std::uint64_t number) const;

  // While the application waits in StarPU: the type's begin and end; `data`: for a handle.
  const elbow_trace_type* waiting(const char* name, bool data);
  static void name_worker();  // before the first event of its thread

 private:
  const elbow_trace_type* type_of(const starpu_task* task);
  const elbow_trace_type* type_named(const char* name);
  std::uint64_t number_of(const starpu_task* task, bool to_submit);
  void depends(std::uint64_t waiting, std::uint64_t task) const;
  void data_of(const starpu_task* task, std::uint64_t number, bool ordered, std::uint64_t& bytes);
  void describe(const starpu_task* task, const elbow_trace_type* type, std::uint64_t number) const;
  bool by_starpu(const starpu_task* task);

  bool recording_ = false;
  int task_category_ = -1;
  int starpu_category_ = -1;
  const elbow_trace_type* submit_ = nullptr;
  const elbow_trace_type* refused_ = nullptr;
  const elbow_trace_type* ready_ = nullptr;
  const elbow_trace_type* registered_ = nullptr;
  const elbow_trace_type* colour_ = nullptr;
  const elbow_trace_type* iteration_ = nullptr;
  const elbow_trace_type* dependency_ = nullptr;
  const elbow_trace_type* empty_ = nullptr;
  TaskTable table_;
  AccessOrder accesses_;
  TagOrder tags_;
  DataTable data_;
  std::mutex mutex_;
  std::map<std::string, const elbow_trace_type*, std::less<>> types_;
  std::map<std::string, const elbow_trace_type*, std::less<>> waits_;
  std::atomic<bool> reduces_ = false;
  std::unordered_set<const starpu_codelet*> reductions_;
};

// The functions of StarPU's scheduler, which record: a task is pushed when it is ready, popped by a worker, which is idle
// while there is none. Only where the category `scheduler` (push, pop: three events a task) or `idle` is named.
// After starpu_init: replaces the functions of the default context's policy, which are StarPU's own copy of it.
void watch_scheduler();

// What happens to data (starpu_data.cpp): uses by tasks, fetches, copies and allocations, only where the category `data` is
// named.
void watch_data();
// Task `number` uses the handle.
void record_use(std::uint64_t number, starpu_data_handle_t handle, unsigned mode);

// The iterations that the submitting thread is in (starpu_iteration_push), the innermost last.
inline thread_local std::vector<std::uint64_t> iterations;

}  // namespace elbowroom::trace
