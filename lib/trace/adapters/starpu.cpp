// Preloaded into a program over StarPU: the functions by which it starts, submits tasks, says what they wait for, and waits
// itself. Each records and calls StarPU's own.
#include <starpu.h>

#include <cstdarg>
#include <vector>

#include "trace/adapters/starpu_tasks.hpp"

using elbowroom::trace::StarpuTasks;

namespace {

// Set while the adapter itself uses StarPU.
thread_local bool own_task = false;

void name_this_worker(void* /* unused */) { StarpuTasks::name_worker(); }

// Rings are made before the first task, so that no task waits for its worker's.
void started(int result, const starpu_conf* conf) {
  if (result != 0 || !StarpuTasks::all().start()) {
    return;
  }
  elbow_trace_thread(nullptr);
  elbowroom::trace::watch_scheduler();
  elbowroom::trace::watch_data();
  // Workers that the application will drive itself do not run yet.
  if (conf == nullptr || conf->n_not_launched_drivers == 0) {
    own_task = true;
    ELBOW_STARPU(starpu_execute_on_each_worker)
    (name_this_worker, nullptr, STARPU_CPU | STARPU_CUDA | STARPU_OPENCL);
    own_task = false;
  }
}

// While the application waits in StarPU: not when StarPU itself calls such a function.
class Waiting {
 public:
  explicit Waiting(const char* name, starpu_data_handle_t handle = nullptr) {
    if (depth++ == 0 && !own_task && StarpuTasks::all().recording() && ELBOW_STARPU(starpu_worker_get_id)() < 0) {
      type_ = StarpuTasks::all().waiting(name, handle != nullptr);
      data_ = handle == nullptr ? 0 : StarpuTasks::all().data_number(handle);
    }
    if (type_ != nullptr) {
      elbow_trace_begin(type_, 0, data_, 0);
    }
  }
  ~Waiting() {
    if (type_ != nullptr) {
      elbow_trace_end(type_, 0, data_, 0);
    }
    --depth;
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  inline static thread_local int depth = 0;
  const elbow_trace_type* type_ = nullptr;
  std::uint64_t data_ = 0;
};

void forget_with_children(starpu_data_handle_t handle) {
  const int children = ELBOW_STARPU(starpu_data_get_nb_children)(handle);
  for (int i = 0; i < children; ++i) {
    const starpu_data_handle_t child = ELBOW_STARPU(starpu_data_get_child)(handle, static_cast<unsigned>(i));
    forget_with_children(child);
    StarpuTasks::all().forget_data(child);
  }
}

}  // namespace

extern "C" {

#define ELBOW_PRELOADED __attribute__((visibility("default")))

ELBOW_PRELOADED int starpu_init(struct starpu_conf* conf) {
  const int result = ELBOW_STARPU(starpu_init)(conf);
  started(result, conf);
  return result;
}

ELBOW_PRELOADED int starpu_initialize(struct starpu_conf* conf, int* argc, char*** argv) {
  const int result = ELBOW_STARPU(starpu_initialize)(conf, argc, argv);
  started(result, conf);
  return result;
}

ELBOW_PRELOADED void starpu_shutdown(void) {
  {
    const Waiting waiting("shut down");
    ELBOW_STARPU(starpu_shutdown)();
  }
  StarpuTasks::all().forget_all();
}

ELBOW_PRELOADED int starpu_task_submit(struct starpu_task* task) {
  StarpuTasks& tasks = StarpuTasks::all();
  // What is wrong with a task is for StarPU to say.
  const bool recorded = tasks.recording() && !own_task && task != nullptr && task->magic == 42;
  const std::uint64_t number = recorded ? tasks.submit(task) : 0;
  const int result = ELBOW_STARPU(starpu_task_submit)(task);
  if (result != 0 && number != 0) {
    tasks.refused(number);
  }
  return result;
}

ELBOW_PRELOADED struct starpu_task* starpu_task_dup(struct starpu_task* task) {
  starpu_task* copy = ELBOW_STARPU(starpu_task_dup)(task);
  StarpuTasks::all().duplicate(task, copy);
  return copy;
}

ELBOW_PRELOADED void starpu_task_declare_deps_array(struct starpu_task* task, unsigned count,
                                                    struct starpu_task* others[]) {
  StarpuTasks::all().declare(task, count, others);
  ELBOW_STARPU(starpu_task_declare_deps_array)(task, count, others);
}

ELBOW_PRELOADED void starpu_task_declare_deps(struct starpu_task* task, unsigned count, ...) {
  std::vector<starpu_task*> others(count);
  va_list given;
  va_start(given, count);
  for (starpu_task*& other : others) {
    other = va_arg(given, starpu_task*);
  }
  va_end(given);
  starpu_task_declare_deps_array(task, count, others.data());
}

ELBOW_PRELOADED void starpu_tag_declare_deps_array(starpu_tag_t tag, unsigned count, starpu_tag_t* others) {
  StarpuTasks::all().declare_tags(tag, count, others);
  ELBOW_STARPU(starpu_tag_declare_deps_array)(tag, count, others);
}

ELBOW_PRELOADED void starpu_tag_declare_deps(starpu_tag_t tag, unsigned count, ...) {
  std::vector<starpu_tag_t> others(count);
  va_list given;
  va_start(given, count);
  for (starpu_tag_t& other : others) {
    other = va_arg(given, starpu_tag_t);
  }
  va_end(given);
  starpu_tag_declare_deps_array(tag, count, others.data());
}

ELBOW_PRELOADED void starpu_tag_remove(starpu_tag_t tag) {
  StarpuTasks::all().forget_tag(tag);
  ELBOW_STARPU(starpu_tag_remove)(tag);
}

ELBOW_PRELOADED void starpu_data_set_reduction_methods(starpu_data_handle_t handle, struct starpu_codelet* reduce,
                                                       struct starpu_codelet* initialise) {
  StarpuTasks::all().reduction(reduce, initialise);
  ELBOW_STARPU(starpu_data_set_reduction_methods)(handle, reduce, initialise);
}

// Registrations of vectors, matrices and the like call this one.
ELBOW_PRELOADED void starpu_data_register(starpu_data_handle_t* handle, int node, void* interface,
                                          struct starpu_data_interface_ops* operations) {
  ELBOW_STARPU(starpu_data_register)(handle, node, interface, operations);
  if (StarpuTasks::all().recording() && !own_task) {
    StarpuTasks::all().registered(*handle, node);
  }
}

ELBOW_PRELOADED void starpu_data_set_name(starpu_data_handle_t handle, const char* name) {
  StarpuTasks::all().name_data(handle, name);
  ELBOW_STARPU(starpu_data_set_name)(handle, name);
}

ELBOW_PRELOADED void starpu_iteration_push(unsigned long iteration) {
  elbowroom::trace::iterations.push_back(iteration);
  ELBOW_STARPU(starpu_iteration_push)(iteration);
}

ELBOW_PRELOADED void starpu_iteration_pop(void) {
  if (!elbowroom::trace::iterations.empty()) {
    elbowroom::trace::iterations.pop_back();
  }
  ELBOW_STARPU(starpu_iteration_pop)();
}

ELBOW_PRELOADED void starpu_data_unregister(starpu_data_handle_t handle) {
  const Waiting waiting("unregister data", handle);
  StarpuTasks::all().forget_data(handle);
  ELBOW_STARPU(starpu_data_unregister)(handle);
}

ELBOW_PRELOADED void starpu_data_unregister_no_coherency(starpu_data_handle_t handle) {
  const Waiting waiting("unregister data", handle);
  StarpuTasks::all().forget_data(handle);
  ELBOW_STARPU(starpu_data_unregister_no_coherency)(handle);
}

ELBOW_PRELOADED void starpu_data_unregister_submit(starpu_data_handle_t handle) {
  StarpuTasks::all().forget_data(handle);
  ELBOW_STARPU(starpu_data_unregister_submit)(handle);
}

ELBOW_PRELOADED void starpu_data_unpartition(starpu_data_handle_t handle, unsigned node) {
  forget_with_children(handle);
  ELBOW_STARPU(starpu_data_unpartition)(handle, node);
}

ELBOW_PRELOADED void starpu_data_partition_clean(starpu_data_handle_t handle, unsigned count,
                                                 starpu_data_handle_t* children) {
  for (unsigned i = 0; i < count; ++i) {
    StarpuTasks::all().forget_data(children[i]);
  }
  ELBOW_STARPU(starpu_data_partition_clean)(handle, count, children);
}

ELBOW_PRELOADED int starpu_data_acquire(starpu_data_handle_t handle, enum starpu_data_access_mode mode) {
  const Waiting waiting("acquire data", handle);
  return ELBOW_STARPU(starpu_data_acquire)(handle, mode);
}

ELBOW_PRELOADED int starpu_task_wait_for_all(void) {
  const Waiting waiting("wait for all tasks");
  return ELBOW_STARPU(starpu_task_wait_for_all)();
}

// StarPU's own call where STARPU_LIMIT_MAX_SUBMITTED_TASKS throttles the submission, too.
ELBOW_PRELOADED int starpu_task_wait_for_n_submitted(unsigned count) {
  const Waiting waiting("wait for fewer tasks");
  return ELBOW_STARPU(starpu_task_wait_for_n_submitted)(count);
}

ELBOW_PRELOADED int starpu_task_wait(struct starpu_task* task) {
  const Waiting waiting("wait for a task");
  return ELBOW_STARPU(starpu_task_wait)(task);
}

ELBOW_PRELOADED int starpu_tag_wait(starpu_tag_t tag) {
  const Waiting waiting("wait for a tag");
  return ELBOW_STARPU(starpu_tag_wait)(tag);
}

}  // extern "C"
