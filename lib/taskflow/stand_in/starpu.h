/* As much of StarPU's interface as elbowroom/taskflow_starpu.h uses, for tests: it counts what is allocated and acquired, and
 * takes no tasks where it is told so. Tasks run when they are submitted, on a copy of their data, as on a device. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

enum starpu_data_access_mode { STARPU_R = 1, STARPU_W = 2, STARPU_RW = 3 };
enum { STARPU_MAIN_RAM = 0, STARPU_VARIABLE_NBUFFERS = -1, STARPU_DATA_MODE_ARRAY = 9 << 17 };

/* Its memory, and another one where tasks have the data. */
struct starpu_stand_in_data {
  std::vector<char> elsewhere;
  char* home;
  int acquired;
};
typedef starpu_stand_in_data* starpu_data_handle_t;

struct starpu_data_descr {
  starpu_data_handle_t handle;
  starpu_data_access_mode mode;
};

struct starpu_codelet {
  void (*cpu_funcs[2])(void**, void*);
  int nbuffers;
  const char* name;
};

struct starpu_task {
  starpu_codelet* cl;
  std::vector<starpu_data_descr> data;
  void* cl_arg;
  std::size_t cl_arg_size;
  void (*callback_func)(void*);
  void* callback_arg;
  int priority;
};

namespace starpu_stand_in {
inline int allocated = 0;          // tasks, arguments and data
inline int last_priority = 0;      // of a submitted task
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

#define STARPU_VARIABLE_GET_PTR(buffer) ((std::uintptr_t) static_cast<starpu_stand_in_data*>(buffer)->elsewhere.data())

inline void starpu_codelet_init(starpu_codelet* codelet) { *codelet = {}; }

inline void starpu_variable_data_register(starpu_data_handle_t* handle, int, std::uintptr_t memory, std::size_t size) {
  ++starpu_stand_in::allocated;
  *handle = new starpu_stand_in_data{std::vector<char>(size), reinterpret_cast<char*>(memory), 0};
  std::memcpy((*handle)->elsewhere.data(), (*handle)->home, size);
}

inline void starpu_data_set_sequential_consistency_flag(starpu_data_handle_t, unsigned) {}

inline void starpu_data_unregister_no_coherency(starpu_data_handle_t handle) {
  --starpu_stand_in::allocated;
  delete handle;
}

inline int starpu_data_acquire_on_node(starpu_data_handle_t handle, int, starpu_data_access_mode mode) {
  handle->acquired = mode;
  if (mode != STARPU_W) std::memcpy(handle->home, handle->elsewhere.data(), handle->elsewhere.size());
  return 0;
}

inline void starpu_data_release_on_node(starpu_data_handle_t handle, int) {
  if (handle->acquired != STARPU_R) std::memcpy(handle->elsewhere.data(), handle->home, handle->elsewhere.size());
  handle->acquired = 0;
}

inline void starpu_data_unregister(starpu_data_handle_t handle) {
  starpu_data_acquire_on_node(handle, STARPU_MAIN_RAM, STARPU_R);
  starpu_data_unregister_no_coherency(handle);
}

inline starpu_task* starpu_task_build(starpu_codelet* codelet, int, const starpu_data_descr* data, int count, int) {
  if (!starpu_stand_in::creates_tasks) return nullptr;
  ++starpu_stand_in::allocated;
  return new starpu_task{codelet, std::vector(data, data + count), nullptr, 0, nullptr, nullptr, 0};
}

inline void starpu_task_destroy(starpu_task* task) {
  --starpu_stand_in::allocated;
  delete task;
}

inline int starpu_task_submit(starpu_task* task) {
  if (!starpu_stand_in::takes_tasks) return -1;
  std::vector<void*> buffers;
  for (const starpu_data_descr& data : task->data) buffers.push_back(data.handle);
  starpu_stand_in::last_priority = task->priority;
  task->cl->cpu_funcs[0](buffers.data(), task->cl_arg);
  task->callback_func(task->callback_arg);
  starpu_task_destroy(task);
  return 0;
}
