// OpenMP's tasks and regions as a trace has them.
#pragma once

#include <omp-tools.h>

#include <array>
#include <cstdint>
#include <map>
#include <mutex>

#include "elbowroom/trace.h"
#include "trace/adapters/access_order.hpp"

namespace elbowroom::trace {

// What OMPT keeps for the tool with each task.
struct OmpTask {
  std::uint64_t number = 0;  // 0: an implicit task, a thread's part of a parallel region
  const elbow_trace_type* type = nullptr;
  OmpTask* parent = nullptr;
  std::uint64_t of = 0;  // the number of its parent
  bool untied = false;   // may go on on another thread after it was left
  bool running = false;
  AccessOrder children;  // dependences are among the tasks of one parent

  void enter() {
    if (!running) {
      running = true;
      elbow_trace_begin(type, 0, number, of);
    }
  }
  void leave() {
    if (running) {
      running = false;
      elbow_trace_end(type, 0, number, of);
    }
  }
};

class OmpTypes {
 public:
  // Of the process, never destroyed; nullptr where they cannot be made. `runtime` is the runtime system's own name.
  static OmpTypes* create(const char* runtime);

  const elbow_trace_type* parallel = nullptr;
  const elbow_trace_type* implicit_task = nullptr;
  const elbow_trace_type* masked = nullptr;
  const elbow_trace_type* wait = nullptr;
  const elbow_trace_type* lock = nullptr;
  const elbow_trace_type* work(ompt_work_t kind) const;
  const elbow_trace_type* region(ompt_sync_region_t kind) const;

  OmpTask* create(OmpTask* parent, bool untied, const void* code);
  void depends(OmpTask& task, const ompt_dependence_t* dependences, int count);

 private:
  bool make(const char* runtime);
  const elbow_trace_type* type_at(const void* code);

  int task_category_ = -1;
  const elbow_trace_type* create_ = nullptr;
  const elbow_trace_type* dependency_ = nullptr;
  std::array<const elbow_trace_type*, 9> work_{};      // by ompt_work_t, 0: any other
  std::array<const elbow_trace_type*, 11> regions_{};  // by ompt_sync_region_t, 0: any other
  std::mutex mutex_;
  std::map<const void*, const elbow_trace_type*> types_;  // by where tasks are created
};

}  // namespace elbowroom::trace
