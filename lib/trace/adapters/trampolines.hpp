// Functions of one signature that stand in for others: each of some hundred has one original. A codelet that holds one can
// be copied, changed and freed as if it held the original.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace elbowroom::trace {

using Function = void (*)(void**, void*);

// `Around(original, buffers, argument)` is what runs instead.
template <void (*Around)(Function, void**, void*), std::size_t Count>
class Trampolines {
 public:
  // What to call instead of `function`; itself where it is such already, or where none is left (`left` false then).
  static Function of(Function function, bool& left) {
    static Trampolines all;
    left = true;
    if (all.own_.contains(function)) {
      return function;
    }
    const std::lock_guard lock(all.mutex_);
    const auto entry = all.taken_.find(function);
    if (entry != all.taken_.end()) {
      return entry->second;
    }
    left = all.taken_.size() < Count;
    if (!left) {
      return function;
    }
    const std::size_t place = all.taken_.size();
    originals[place].store(function, std::memory_order_release);
    all.taken_.emplace(function, kFunctions[place]);
    return kFunctions[place];
  }

 private:
  template <std::size_t Place>
  static void run(void** buffers, void* argument) {
    Around(originals[Place].load(std::memory_order_acquire), buffers, argument);
  }

  template <std::size_t... Places>
  static constexpr std::array<Function, Count> all_of(std::index_sequence<Places...>) {
    return {&run<Places>...};
  }

  Trampolines() {
    for (std::size_t place = 0; place < Count; ++place) {
      own_.emplace(kFunctions[place], place);
    }
  }

  static constexpr std::array<Function, Count> kFunctions = all_of(std::make_index_sequence<Count>{});
  inline static std::array<std::atomic<Function>, Count> originals{};
  std::unordered_map<Function, std::size_t> own_;
  std::unordered_map<Function, Function> taken_;
  std::mutex mutex_;
};

}  // namespace elbowroom::trace
