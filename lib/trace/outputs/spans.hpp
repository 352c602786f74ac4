// Begins and ends as every viewer wants them: properly nested on each thread, whatever was recorded or lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/merge/sink.hpp"

namespace elbowroom::trace {

// Deeper ones are shown as events: viewers have limits, and memory must not grow with begins that never end.
constexpr std::size_t kDeepestShown = 512;

struct Span {
  std::uint32_t type = 0;
  std::uint32_t small = 0;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::int64_t begin = 0;
};

class Spans {
 public:
  explicit Spans(const MergedJob& job);

  // False: nested too deeply, to be shown as an event.
  bool begin(const MergedEvent& event);
  // Which open span of its thread ends, from 0 for the innermost; -1: none, to be shown as an event. It is the innermost of
  // the event's type; of tasks, of the same number. Those inside of it are interrupted: to be ended and begun again.
  std::ptrdiff_t ending(const MergedEvent& event) const;
  // That one is gone.
  void end(const MergedEvent& event, std::ptrdiff_t which);

  // Open spans of a thread, the innermost last.
  const std::vector<Span>& open(std::uint32_t thread) const { return threads_[thread].open; }

 private:
  struct Thread {
    std::vector<Span> open;
    std::uint64_t too_deep = 0;  // begun below the deepest, and not ended
  };
  std::vector<Thread> threads_;
  std::vector<bool> task_;  // of each type: the category is "task", where `first` tells one from another
};

}  // namespace elbowroom::trace
