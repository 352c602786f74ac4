// OpenMP's tool (OMPT): LLVM's runtime system calls ompt_start_tool of a preloaded library, or of one that
// OMP_TOOL_LIBRARIES names. GCC's libgomp has no such interface.
#include <dlfcn.h>
#include <omp-tools.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "trace/adapters/omp_tasks.hpp"
#include "trace/adapters/started.hpp"

namespace elbowroom::trace {
namespace {

OmpTypes* types = nullptr;

void mark(const elbow_trace_type* type, ompt_scope_endpoint_t endpoint, std::uint32_t small, std::uint64_t first,
          std::uint64_t second) {
  if (endpoint == ompt_scope_begin || endpoint == ompt_scope_beginend) {
    elbow_trace_begin(type, small, first, second);
  }
  if (endpoint == ompt_scope_end || endpoint == ompt_scope_beginend) {
    elbow_trace_end(type, small, first, second);
  }
}

void on_thread_begin(ompt_thread_t kind, ompt_data_t* /* thread */) {
  static std::atomic<int> workers{0};
  if (kind == ompt_thread_worker) {
    elbow_trace_thread(("OpenMP " + std::to_string(++workers)).c_str());
  }
}

void on_parallel_begin(ompt_data_t* /* task */, const ompt_frame_t* /* frame */, ompt_data_t* region,
                       unsigned int threads, int /* flags */, const void* /* code */) {
  static std::atomic<std::uint64_t> regions{0};
  region->value = ++regions;
  elbow_trace_begin(types->parallel, threads, region->value, 0);
}

void on_parallel_end(ompt_data_t* region, ompt_data_t* /* task */, int /* flags */, const void* /* code */) {
  elbow_trace_end(types->parallel, 0, region->value, 0);
}

void on_implicit_task(ompt_scope_endpoint_t endpoint, ompt_data_t* region, ompt_data_t* task, unsigned int threads,
                      unsigned int index, int flags) {
  if (endpoint == ompt_scope_begin) {
    task->ptr = new OmpTask;
  }
  // The program itself is a task, too: it begins before anything is traced.
  if ((flags & ompt_task_initial) == 0) {
    // At the end the region may be no more, and the number of threads is 0.
    mark(types->implicit_task, endpoint, index, region == nullptr ? 0 : region->value, threads);
  }
  if (endpoint == ompt_scope_end) {
    delete static_cast<OmpTask*>(task->ptr);
    task->ptr = nullptr;
  }
}

void on_work(ompt_work_t kind, ompt_scope_endpoint_t endpoint, ompt_data_t* region, ompt_data_t* /* task */,
             std::uint64_t count, const void* /* code */) {
  mark(types->work(kind), endpoint, 0, region == nullptr ? 0 : region->value, count);
}

void on_masked(ompt_scope_endpoint_t endpoint, ompt_data_t* region, ompt_data_t* /* task */, const void* /* code */) {
  mark(types->masked, endpoint, 0, region == nullptr ? 0 : region->value, 0);
}

void on_sync_region(ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint, ompt_data_t* region,
                    ompt_data_t* /* task */, const void* /* code */) {
  mark(types->region(kind), endpoint, 0, region == nullptr ? 0 : region->value, 0);
}

void on_sync_region_wait(ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint, ompt_data_t* region,
                         ompt_data_t* /* task */, const void* /* code */) {
  mark(types->wait, endpoint, static_cast<std::uint32_t>(kind), region == nullptr ? 0 : region->value, 0);
}

void on_mutex_acquire(ompt_mutex_t kind, unsigned int /* hint */, unsigned int /* implementation */,
                      ompt_wait_id_t lock, const void* /* code */) {
  elbow_trace_begin(types->lock, kind, lock, 0);
}

void on_mutex_acquired(ompt_mutex_t kind, ompt_wait_id_t lock, const void* /* code */) {
  elbow_trace_end(types->lock, kind, lock, 0);
}

void on_task_create(ompt_data_t* parent, const ompt_frame_t* /* frame */, ompt_data_t* task, int flags,
                    int /* has_dependences */, const void* code) {
  if ((flags & (ompt_task_explicit | ompt_task_target | ompt_task_taskwait)) != 0) {
    task->ptr = types->create(parent == nullptr ? nullptr : static_cast<OmpTask*>(parent->ptr),
                              (flags & ompt_task_untied) != 0, code);
  } else if (task->ptr == nullptr) {
    task->ptr = new OmpTask;
  }
}

void on_dependences(ompt_data_t* task, const ompt_dependence_t* dependences, int count) {
  if (task->ptr != nullptr) {
    types->depends(*static_cast<OmpTask*>(task->ptr), dependences, count);
  }
}

// A task is left when it is done; an untied one also when its thread goes back to what it did before, since it may go on
// elsewhere. A task that is interrupted by another goes on after it, on the same thread.
void on_task_schedule(ompt_data_t* prior, ompt_task_status_t status, ompt_data_t* next) {
  auto* after = next == nullptr ? nullptr : static_cast<OmpTask*>(next->ptr);
  auto* before = prior == nullptr ? nullptr : static_cast<OmpTask*>(prior->ptr);
  const bool fresh = after != nullptr && after->number != 0 && !after->running;
  if (before != nullptr && before->number != 0) {
    const bool done = status == ompt_task_complete || status == ompt_task_cancel || status == ompt_task_late_fulfill;
    const bool switched = status == ompt_task_switch || status == ompt_task_yield;
    if (done || status == ompt_task_detach || (before->untied && switched && !fresh)) {
      before->leave();
    }
    if (done) {
      delete before;
      prior->ptr = nullptr;
    }
  }
  if (fresh) {
    after->enter();
  }
}

template <typename Callback>
void set(ompt_set_callback_t set_callback, ompt_callbacks_t which, Callback callback) {
  set_callback(which, reinterpret_cast<ompt_callback_t>(callback));
}

int initialise(ompt_function_lookup_t lookup, int /* device */, ompt_data_t* /* data */) {
  const auto set_callback = reinterpret_cast<ompt_set_callback_t>(lookup("ompt_set_callback"));
  if (set_callback == nullptr) {
    return 0;
  }
  set(set_callback, ompt_callback_thread_begin, on_thread_begin);
  set(set_callback, ompt_callback_parallel_begin, on_parallel_begin);
  set(set_callback, ompt_callback_parallel_end, on_parallel_end);
  set(set_callback, ompt_callback_implicit_task, on_implicit_task);
  set(set_callback, ompt_callback_work, on_work);
  set(set_callback, ompt_callback_masked, on_masked);
  set(set_callback, ompt_callback_sync_region, on_sync_region);
  set(set_callback, ompt_callback_sync_region_wait, on_sync_region_wait);
  set(set_callback, ompt_callback_mutex_acquire, on_mutex_acquire);
  set(set_callback, ompt_callback_mutex_acquired, on_mutex_acquired);
  set(set_callback, ompt_callback_task_create, on_task_create);
  set(set_callback, ompt_callback_dependences, on_dependences);
  set(set_callback, ompt_callback_task_schedule, on_task_schedule);
  return 1;
}

void finalise(ompt_data_t* /* data */) {}

bool first_rank() {
  for (const char* name : {"ELBOW_TRACE_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    if (const char* rank = std::getenv(name)) {
      return std::string(rank) == "0";
    }
  }
  return true;
}

// Says of a program with GCC's OpenMP that none of it will be in the trace.
__attribute__((constructor)) void tell_of_libgomp() {
  const char* directory = std::getenv("ELBOW_TRACE_DIRECTORY");
  if (directory == nullptr || *directory == '\0' || !first_rank()) {
    return;
  }
  void* const gomp = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (gomp == nullptr) {
    return;
  }
  // LLVM's runtime system may be there by libgomp's name.
  if (dlsym(gomp, "__kmpc_fork_call") == nullptr) {
    std::fprintf(
        stderr,
        "elbow_trace: OpenMP is not traced: this program uses GCC's libgomp, which has no tool interface; let it run "
        "over LLVM's libomp (docs/reference/trace-runtimes.md)\n");
  }
  dlclose(gomp);
}

}  // namespace
}  // namespace elbowroom::trace

extern "C" __attribute__((visibility("default"))) ompt_start_tool_result_t* ompt_start_tool(unsigned int /* version */,
                                                                                            const char* runtime) {
  using elbowroom::trace::OmpTypes;
  static ompt_start_tool_result_t result = {elbowroom::trace::initialise, elbowroom::trace::finalise, {0}};
  if (!elbowroom::trace::started("OpenMP")) {
    return nullptr;
  }
  elbowroom::trace::types = OmpTypes::create(runtime);
  return elbowroom::trace::types == nullptr ? nullptr : &result;
}
