// Where the tasks of a rank run. The only thing that the builds do not share: inline_engine.cpp, starpu_engine.cpp.
#pragma once

#include <memory>

#include "common/sharing.hpp"
#include "elbowroom/taskflow.h"

namespace elbowroom::factorizations {

class Engine {
 public:
  static const char* const kName;  // as plans call the build: inline or starpu

  // Binds this thread, which uses the flow. Throws RequestError. Collective.
  explicit Engine(const program::Seat& seat);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::size_t threads() const { return threads_; }
  const elbow_taskflow_executor* executor() const;  // null: tasks run in the thread that uses the flow
  // The core of a thread for broadcasts; -1: the thread that uses the flow makes their progress.
  int progress_core() const { return progress_core_; }
  void resume();  // computing threads look for tasks
  void pause();

 private:
  struct Impl;
  std::size_t threads_;
  int progress_core_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace elbowroom::factorizations
