
#include <starpu.h>
#include <starpu_scheduler.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string_view>

#include "elbowroom/trace.h"
#include "trace/adapters/starpu_tasks.hpp"

namespace elbowroom::trace {
namespace {

struct Scheduler {
  int (*push)(starpu_task*) = nullptr;
  starpu_task* (*pop)(unsigned) = nullptr;
  bool steals = false;  // workers have queues of their own, and a task is put into that of the worker that pushes it
  const elbow_trace_type* pushed = nullptr;
  const elbow_trace_type* popped = nullptr;
  const elbow_trace_type* stolen = nullptr;
  const elbow_trace_type* idle = nullptr;
};
Scheduler scheduler;

std::atomic<std::int64_t> queued = 0;  // tasks that were pushed and not popped

thread_local bool is_idle = false;
thread_local std::uint64_t cpu_before = 0;  // ns of the worker's thread, when it became idle

std::uint64_t queue_length() {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(queued.load(std::memory_order_relaxed), 0));
}

std::uint64_t cpu_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

// Tasks that are not recorded have number 0.
int push(starpu_task* task) {
  const std::uint64_t number = StarpuTasks::all().push(task, ELBOW_STARPU(starpu_worker_get_id)());
  queued.fetch_add(1, std::memory_order_relaxed);
  if (number == 0) {
    return scheduler.push(task);
  }
  elbow_trace_begin(scheduler.pushed, 0, number, queue_length());
  const int result = scheduler.push(task);
  elbow_trace_end(scheduler.pushed, 0, number, queue_length());
  return result;
}

void record_pop(const starpu_task* task) {
  const std::int64_t before = queued.fetch_sub(1, std::memory_order_relaxed);
  const int worker = ELBOW_STARPU(starpu_worker_get_id)();
  const KnownTask known = StarpuTasks::all().known(task).value_or(KnownTask{});
  elbow_trace_event(scheduler.popped, static_cast<std::uint32_t>(worker), known.number,
                    static_cast<std::uint64_t>(std::max<std::int64_t>(before - 1, 0)));
  if (scheduler.steals && known.pushed_by >= 0 && known.pushed_by != worker) {
    elbow_trace_event(scheduler.stolen, static_cast<std::uint32_t>(worker), known.number,
                      static_cast<std::uint64_t>(known.pushed_by));
  }
}

// Workers call it again and again: what is recorded is that the first call found nothing, and that one found a task.
starpu_task* pop(unsigned context) {
  starpu_task* const task = scheduler.pop(context);
  StarpuTasks::name_worker();
  if (task == nullptr && !is_idle) {
    cpu_before = cpu_ns();
    elbow_trace_begin(scheduler.idle, 0, 0, 0);
  } else if (task != nullptr && is_idle) {
    elbow_trace_end(scheduler.idle, 0, cpu_ns() - cpu_before, 0);
  }
  is_idle = task == nullptr;
  if (task != nullptr) {
    record_pop(task);
  }
  return task;
}

bool make_types(int category, int idle) {
  scheduler.pushed = elbow_trace_type_new("push", category, nullptr, "task", "queued");
  scheduler.popped = elbow_trace_type_new("pop", category, "worker", "task", "queued");
  scheduler.stolen = elbow_trace_type_new("steal", category, "worker", "task", "from");
  scheduler.idle = elbow_trace_type_new("idle", idle, nullptr, "cpu_ns", nullptr);
  return scheduler.pushed != nullptr && scheduler.popped != nullptr && scheduler.stolen != nullptr &&
         scheduler.idle != nullptr;
}

}  // namespace

void watch_scheduler() {
  if (named_category("scheduler") < 0 && named_category("idle") < 0) {
    return;
  }
  starpu_sched_policy* const policy = ELBOW_STARPU(starpu_sched_ctx_get_sched_policy)(0);
  if (policy == nullptr || policy->push_task == nullptr || policy->pop_task == nullptr) {
    std::fprintf(stderr,
                 "elbow_trace: this scheduler of StarPU does not push and pop tasks one by one: it is not traced\n");
    return;
  }
  if (policy->pop_task == pop ||
      (scheduler.idle == nullptr && !make_types(elbow_trace_category("scheduler"), elbow_trace_category("idle")))) {
    return;
  }
  // ws, lws: in StarPU 1.3, the queue of the worker whose task's end made it ready; other threads' tasks go to any worker.
  scheduler.steals = policy->policy_name != nullptr && std::string_view(policy->policy_name).ends_with("ws");
  scheduler.push = policy->push_task;
  scheduler.pop = policy->pop_task;
  policy->push_task = push;
  policy->pop_task = pop;
}

}  // namespace elbowroom::trace
