
#include <starpu.h>
#include <starpu_scheduler.h>

#include <cstdio>
#include <cstdlib>

#include "elbowroom/trace.h"
#include "trace/adapters/starpu_tasks.hpp"

namespace elbowroom::trace {
namespace {

struct Scheduler {
  int (*push)(starpu_task*) = nullptr;
  starpu_task* (*pop)(unsigned) = nullptr;
  const elbow_trace_type* pushed = nullptr;
  const elbow_trace_type* popped = nullptr;
  const elbow_trace_type* idle = nullptr;
};
Scheduler scheduler;

thread_local bool is_idle = false;

// Tasks that are not recorded have number 0.
int push(starpu_task* task) {
  const std::uint64_t number = StarpuTasks::all().known_number(task);
  if (number == 0) {
    return scheduler.push(task);
  }
  elbow_trace_begin(scheduler.pushed, 0, number, 0);
  const int result = scheduler.push(task);
  elbow_trace_end(scheduler.pushed, 0, number, 0);
  return result;
}

// Workers call it again and again: what is recorded is that the first call found nothing, and that one found a task.
starpu_task* pop(unsigned context) {
  starpu_task* const task = scheduler.pop(context);
  if ((task == nullptr) == is_idle) {
    if (task == nullptr) {
      return nullptr;
    }
  } else if (task == nullptr) {
    elbow_trace_begin(scheduler.idle, 0, 0, 0);
  } else {
    elbow_trace_end(scheduler.idle, 0, 0, 0);
  }
  is_idle = task == nullptr;
  if (task != nullptr) {
    const auto worker = static_cast<std::uint32_t>(ELBOW_STARPU(starpu_worker_get_id)());
    elbow_trace_event(scheduler.popped, worker, StarpuTasks::all().known_number(task), 0);
  }
  return task;
}

bool make_types(int category, int idle) {
  scheduler.pushed = elbow_trace_type_new("push", category, nullptr, "task", nullptr);
  scheduler.popped = elbow_trace_type_new("pop", category, "worker", "task", nullptr);
  scheduler.idle = elbow_trace_type_new("idle", idle, nullptr, nullptr, nullptr);
  return scheduler.pushed != nullptr && scheduler.popped != nullptr && scheduler.idle != nullptr;
}

}  // namespace

void watch_scheduler() {
  const char* const named = std::getenv("ELBOW_TRACE_CATEGORIES");
  if (named == nullptr || *named == '\0') {
    return;
  }
  const int category = elbow_trace_category("scheduler");
  const int idle = elbow_trace_category("idle");
  if (category < 0 || idle < 0 || ((elbow_trace_mask() >> category | elbow_trace_mask() >> idle) & 1) == 0) {
    return;
  }
  starpu_sched_policy* const policy = ELBOW_STARPU(starpu_sched_ctx_get_sched_policy)(0);
  if (policy == nullptr || policy->push_task == nullptr || policy->pop_task == nullptr) {
    std::fprintf(stderr,
                 "elbow_trace: this scheduler of StarPU does not push and pop tasks one by one: it is not traced\n");
    return;
  }
  if (policy->pop_task == pop || (scheduler.idle == nullptr && !make_types(category, idle))) {
    return;
  }
  scheduler.push = policy->push_task;
  scheduler.pop = policy->pop_task;
  policy->push_task = push;
  policy->pop_task = pop;
}

}  // namespace elbowroom::trace
