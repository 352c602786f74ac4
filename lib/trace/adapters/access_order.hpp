// What a task waits for since it uses the same data as tasks before it (StarPU's handbook, "Sequential Consistency"): tasks
// that use a piece of data one after the other form groups whose members may run at the same time; each member waits for
// all of the group before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace elbowroom::trace {

enum class Access : std::uint8_t { kRead, kReduce, kCommute, kWrite };  // writes are alone in their group

struct Use {
  const void* data;
  Access access;
};

class AccessOrder {
 public:
  // Task `number` uses all this data, after all that were told before; appends the tasks that it waits for.
  void use(const std::vector<Use>& uses, std::uint64_t number, std::vector<std::uint64_t>& waits) {
    const std::lock_guard lock(mutex_);
    for (const auto& [data, access] : uses) {
      join(data_[data], access, number, waits);
    }
  }

  // The data is no more, and its address may be that of others.
  void forget(const void* data) {
    const std::lock_guard lock(mutex_);
    data_.erase(data);
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    data_.clear();
  }

 private:
  struct Groups {
    Access access = Access::kWrite;
    std::vector<std::uint64_t> before;
    std::vector<std::uint64_t> last;
  };

  static void join(Groups& groups, Access access, std::uint64_t number, std::vector<std::uint64_t>& waits) {
    const bool beside = !groups.last.empty() && access == groups.access && access != Access::kWrite;
    if (!beside) {
      groups.before.swap(groups.last);
      groups.last.clear();
      groups.access = access;
    }
    groups.last.push_back(number);
    waits.insert(waits.end(), groups.before.begin(), groups.before.end());
  }

  std::mutex mutex_;
  std::unordered_map<const void*, Groups> data_;
};

// Without those that several pieces of data name, and without the task itself.
inline std::vector<std::uint64_t>& each_once(std::vector<std::uint64_t>& waits, std::uint64_t own) {
  std::sort(waits.begin(), waits.end());
  waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
  std::erase(waits, own);
  return waits;
}

}  // namespace elbowroom::trace
