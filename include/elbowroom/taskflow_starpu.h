/* Tasks of an elbow_taskflow on StarPU's workers. A header only: it is compiled with the program's own StarPU (1.3 or newer).
 *
 *     starpu_init(NULL);
 *     elbow_taskflow_executor executor = elbow_taskflow_executor_of_starpu();
 *     elbow_taskflow_settings settings = {.size = sizeof settings, .executor = &executor};
 *
 * All data are registered with StarPU, as variables of so many bytes; tasks come to StarPU with their handles, modes and
 * priorities when all that they use is here, so that its scheduler sees what they access. A handle is acquired in main memory
 * around each message, and released for readers while the data are still being forwarded. The flow itself tracks what tasks
 * wait for: StarPU's sequential consistency is off for these handles. Free the flow before starpu_shutdown. On a host with
 * several processes, give each its own cores (STARPU_WORKERS_CPUID): by default StarPU places the threads of all processes on the
 * same ones. A program whose kernels are codelets uses elbowroom/starpu_mpi.h instead.
 */
#ifndef ELBOWROOM_TASKFLOW_STARPU_H
#define ELBOWROOM_TASKFLOW_STARPU_H

#include <starpu.h>
#include <stdlib.h>
#include <string.h>

#include "elbowroom/taskflow.h"

/* NOLINTBEGIN(modernize-use-nullptr): C, too */

typedef struct elbow_taskflow_starpu_task {
  void (*body)(void*, void* const*);
  void (*over)(void*);
  void* argument;
  size_t count;
  void* buffers[1]; /* and more */
} elbow_taskflow_starpu_task;

static void elbow_taskflow_starpu_compute(void** buffers, void* argument) {
  elbow_taskflow_starpu_task* const task = (elbow_taskflow_starpu_task*)argument;
  for (size_t i = 0; i < task->count; ++i) task->buffers[i] = (void*)STARPU_VARIABLE_GET_PTR(buffers[i]);
  task->body(task->argument, task->buffers);
}

/* StarPU has released the task's data. */
static void elbow_taskflow_starpu_over(void* argument) {
  elbow_taskflow_starpu_task* const task = (elbow_taskflow_starpu_task*)argument;
  task->over(task->argument);
  free(task);
}

static struct starpu_codelet* elbow_taskflow_starpu_codelet(void) {
  static struct starpu_codelet codelet;
  if (codelet.cpu_funcs[0] == NULL) {
    starpu_codelet_init(&codelet);
    codelet.cpu_funcs[0] = elbow_taskflow_starpu_compute;
    codelet.nbuffers = STARPU_VARIABLE_NBUFFERS;
    codelet.name = "taskflow";
  }
  return &codelet;
}

static enum starpu_data_access_mode elbow_taskflow_starpu_mode(int mode) {
  return mode == ELBOW_TASKFLOW_READ ? STARPU_R : mode == ELBOW_TASKFLOW_WRITE ? STARPU_W : STARPU_RW;
}

static void* elbow_taskflow_starpu_add(void* state, void* memory, size_t size) {
  starpu_data_handle_t handle;
  (void)state;
  starpu_variable_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)memory, size == 0 ? 1 : size);
  starpu_data_set_sequential_consistency_flag(handle, 0);
  return handle;
}

static void elbow_taskflow_starpu_remove(void* state, void* handle, int home) {
  (void)state;
  if (home) {
    starpu_data_unregister((starpu_data_handle_t)handle);
  } else {
    starpu_data_unregister_no_coherency((starpu_data_handle_t)handle);
  }
}

static int elbow_taskflow_starpu_acquire(void* state, void* handle, int mode) {
  (void)state;
  return starpu_data_acquire_on_node((starpu_data_handle_t)handle, STARPU_MAIN_RAM, elbow_taskflow_starpu_mode(mode));
}

static void elbow_taskflow_starpu_release(void* state, void* handle) {
  (void)state;
  starpu_data_release_on_node((starpu_data_handle_t)handle, STARPU_MAIN_RAM);
}

static int elbow_taskflow_starpu_run(void* state, int priority, void (*body)(void*, void* const*), void (*over)(void*),
                                     void* argument, void* const* handles, const int* modes, size_t count) {
  struct starpu_data_descr* const data = (struct starpu_data_descr*)malloc((count + 1) * sizeof *data);
  elbow_taskflow_starpu_task* const own = (elbow_taskflow_starpu_task*)malloc(sizeof *own + count * sizeof(void*));
  struct starpu_task* task = NULL;
  (void)state;
  if (data != NULL && own != NULL) {
    for (size_t i = 0; i < count; ++i) {
      data[i].handle = (starpu_data_handle_t)handles[i];
      data[i].mode = elbow_taskflow_starpu_mode(modes[i]);
    }
    task = starpu_task_build(elbow_taskflow_starpu_codelet(), STARPU_DATA_MODE_ARRAY, data, (int)count, 0);
  }
  free(data);
  if (task == NULL) {
    free(own);
    return -1;
  }
  own->body = body;
  own->over = over;
  own->argument = argument;
  own->count = count;
  task->cl_arg = own;
  task->cl_arg_size = sizeof *own;
  task->callback_func = elbow_taskflow_starpu_over;
  task->callback_arg = own;
  task->priority = priority;
  if (starpu_task_submit(task) == 0) return 0;
  free(own);
  starpu_task_destroy(task);
  return -1;
}

static inline elbow_taskflow_executor elbow_taskflow_executor_of_starpu(void) {
  static const elbow_taskflow_handles handles = {sizeof handles,
                                                 elbow_taskflow_starpu_add,
                                                 elbow_taskflow_starpu_remove,
                                                 elbow_taskflow_starpu_run,
                                                 elbow_taskflow_starpu_acquire,
                                                 elbow_taskflow_starpu_release};
  const elbow_taskflow_executor executor = {sizeof executor, NULL, NULL, &handles};
  return executor;
}

/* NOLINTEND(modernize-use-nullptr) */

#endif
