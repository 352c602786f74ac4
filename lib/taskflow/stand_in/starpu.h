/* As much of StarPU's interface as elbowroom/taskflow_starpu.h uses, for tests: it counts what is allocated, and submits
 * nothing where it is told so. Tasks run when they are submitted. */
#pragma once

#include <cstddef>
#include <cstdlib>

struct starpu_codelet {
  void (*cpu_funcs[2])(void**, void*);
  const char* name;
};

struct starpu_task {
  starpu_codelet* cl;
  void* cl_arg;
  std::size_t cl_arg_size;
  int cl_arg_free;
  int priority;
};

namespace starpu_stand_in {
inline int allocated = 0;          // tasks and arguments
inline bool creates_tasks = true;  // else there is no memory for them
inline bool allocates = true;      // else there is none for arguments
inline bool takes_tasks = true;    // else it refuses those that are submitted

inline void* allocate(std::size_t size) {
  if (!allocates) return nullptr;
  ++allocated;
  return std::malloc(size);
}

inline void release(void* memory) {
  if (memory != nullptr) --allocated;
  std::free(memory);
}
}  // namespace starpu_stand_in

inline void starpu_codelet_init(starpu_codelet* codelet) { *codelet = {}; }

inline starpu_task* starpu_task_create() {
  if (!starpu_stand_in::creates_tasks) return nullptr;
  ++starpu_stand_in::allocated;
  return new starpu_task{};
}

/* As StarPU does, with the argument where it is the task's to free. */
inline void starpu_task_destroy(starpu_task* task) {
  if (task->cl_arg_free != 0) starpu_stand_in::release(task->cl_arg);
  --starpu_stand_in::allocated;
  delete task;
}

inline int starpu_task_submit(starpu_task* task) {
  if (!starpu_stand_in::takes_tasks) return -1;
  task->cl->cpu_funcs[0](nullptr, task->cl_arg);
  starpu_task_destroy(task);
  return 0;
}
