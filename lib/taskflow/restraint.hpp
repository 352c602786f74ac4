// Memory-bound tasks wait, for a while, while large messages move on the node: the lever `taskflow` of a guard
// (src/elbowroom/guard/levers/taskflow.py). Without a guard it does nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "elbowroom/guard.h"
#include "graph.hpp"
#include "guard/movement.hpp"
#include "guard/starpu/codelets.hpp"

namespace elbowroom::taskflow {

class Restraint {
 public:
  // By the board that the environment names.
  Restraint();

  // Says on the board which setting is in effect from now on.
  void look();
  // Whether the task, which could start now, is to wait; then it is kept until release() gives it back.
  bool keep(Task& task);
  // A task that need not wait any more; NULL where there is none. `alone`: nothing else runs, or could start.
  Task* release(bool alone);
  // Runs it on its `buffers`, on any thread, and learns whether its kernel is memory-bound.
  void run(Task& task, void* const* buffers);

 private:
  struct Kept {
    Task* task;
    std::uint64_t since;
  };

  guard::Codelet& codelet_of(const Task& task);
  bool moves() { return guard::messages_move(board_.get(), movement_); }

  std::unique_ptr<elbow_guard, void (*)(elbow_guard*)> board_;
  std::unique_ptr<guard::Codelets> codelets_;
  guard::Movement movement_;
  std::uint64_t setting_ = 0;
  std::deque<Kept> kept_;  // of higher priority first, of equal ones the oldest
};

}  // namespace elbowroom::taskflow
