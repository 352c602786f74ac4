/* Tasks of an elbow_taskflow on StarPU's workers. A header only: it is compiled with the program's own StarPU (1.3 or newer).
 *
 *     starpu_init(NULL);
 *     elbow_taskflow_executor executor = elbow_taskflow_executor_of_starpu();
 *     elbow_taskflow_settings settings = {.size = sizeof settings, .executor = &executor};
 *
 * Tasks come to StarPU when all that they use is here, without data handles: the flow itself tracks what they read and write,
 * so that readers start while their data are still being forwarded. On a host with several processes, give each its own cores
 * (STARPU_WORKERS_CPUID): by default StarPU places the threads of all processes on the same ones.
 */
#ifndef ELBOWROOM_TASKFLOW_STARPU_H
#define ELBOWROOM_TASKFLOW_STARPU_H

#include <starpu.h>
#include <stdlib.h>
#include <string.h>

#include "elbowroom/taskflow.h"

/* NOLINTBEGIN(modernize-use-nullptr): C, too */

typedef struct elbow_taskflow_starpu_task {
  void (*body)(void*);
  void* argument;
} elbow_taskflow_starpu_task;

static void elbow_taskflow_starpu_compute(void** buffers, void* argument) {
  const elbow_taskflow_starpu_task* task = (const elbow_taskflow_starpu_task*)argument;
  (void)buffers;
  task->body(task->argument);
}

static struct starpu_codelet* elbow_taskflow_starpu_codelet(void) {
  static struct starpu_codelet codelet;
  if (codelet.cpu_funcs[0] == NULL) {
    starpu_codelet_init(&codelet);
    codelet.cpu_funcs[0] = elbow_taskflow_starpu_compute;
    codelet.name = "taskflow";
  }
  return &codelet;
}

static int elbow_taskflow_starpu_run(void* state, int priority, void (*body)(void*), void* argument) {
  struct starpu_task* const task = starpu_task_create();
  elbow_taskflow_starpu_task* const own = (elbow_taskflow_starpu_task*)malloc(sizeof *own);
  (void)state;
  if (task == NULL || own == NULL) {
    free(own);
    if (task != NULL) starpu_task_destroy(task);
    return -1;
  }
  own->body = body;
  own->argument = argument;
  task->cl = elbow_taskflow_starpu_codelet();
  task->cl_arg = own;
  task->cl_arg_size = sizeof *own;
  task->cl_arg_free = 1;
  task->priority = priority;
  if (starpu_task_submit(task) == 0) return 0;
  task->cl_arg = NULL;
  task->cl_arg_free = 0;
  free(own);
  starpu_task_destroy(task);
  return -1;
}

static inline elbow_taskflow_executor elbow_taskflow_executor_of_starpu(void) {
  const elbow_taskflow_executor executor = {sizeof executor, NULL, elbow_taskflow_starpu_run};
  return executor;
}

/* NOLINTEND(modernize-use-nullptr) */

#endif
