// What tasks wait for by tags (starpu_tag_declare_deps), which may be said before the tasks are there. Tags without a task
// stand for no task: nothing is known of whom they wait for.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace elbowroom::trace {

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

}  // namespace elbowroom::trace
