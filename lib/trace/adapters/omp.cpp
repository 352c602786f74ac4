// OpenMP's tool (OMPT): LLVM's runtime system calls ompt_start_tool of a preloaded library, or of one that
// OMP_TOOL_LIBRARIES names. GCC's libgomp has no such interface.
#include <dlfcn.h>
#include <omp-tools.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "elbowroom/trace.h"
#include "trace/adapters/access_order.hpp"
#include "trace/adapters/numbers.hpp"
#include "trace/adapters/started.hpp"

namespace elbowroom::trace {
namespace {

// OpenMP's tasks and regions as a trace has them.
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

// Where in the program: its function, or the file for addr2line where functions have no names.
std::string place_of(const void* code) {
  Dl_info info{};
  if (code == nullptr || dladdr(code, &info) == 0 || info.dli_fname == nullptr) {
    return "task";
  }
  const char* slash = std::strrchr(info.dli_fname, '/');
  const bool named = info.dli_sname != nullptr;
  const std::string name = named ? info.dli_sname : slash == nullptr ? info.dli_fname : slash + 1;
  const auto base = reinterpret_cast<std::uintptr_t>(named ? info.dli_saddr : info.dli_fbase);
  char offset[24];
  std::snprintf(offset, sizeof offset, "+0x%zx",
                static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(code) - base));
  return name + offset;
}

Access access_of(ompt_dependence_type_t type) {
  switch (type) {
    case ompt_dependence_type_in: return Access::kRead;
    case ompt_dependence_type_inoutset: return Access::kReduce;
    case ompt_dependence_type_mutexinoutset: return Access::kCommute;
    default: return Access::kWrite;
  }
}

OmpTypes* OmpTypes::create(const char* runtime) {
  static auto* const types = new OmpTypes;
  if (!types->make(runtime)) {
    std::fprintf(stderr, "elbow_trace: OpenMP is not traced: %s\n", elbow_trace_error());
    return nullptr;
  }
  return types;
}

bool OmpTypes::make(const char* runtime) {
  task_category_ = elbow_trace_category("task");
  const int omp = elbow_trace_category("omp");
  dependency_ = elbow_trace_type_new("dependency", task_category_, nullptr, "task", "waits");
  create_ = elbow_trace_type_new("create", omp, nullptr, "task", "parent");
  parallel = elbow_trace_type_new("parallel region", omp, "threads", "region", nullptr);
  implicit_task = elbow_trace_type_new("implicit task", omp, "index", "region", "threads");
  masked = elbow_trace_type_new("masked", omp, nullptr, "region", nullptr);
  wait = elbow_trace_type_new("wait", omp, "kind", "region", nullptr);
  lock = elbow_trace_type_new("wait for a lock", omp, "kind", "lock", nullptr);
  constexpr const char* kWork[] = {"work-sharing", "loop",       "sections", "single", "single of another",
                                   "workshare",    "distribute", "taskloop", "scope"};
  for (std::size_t kind = 0; kind < work_.size(); ++kind) {
    work_[kind] = elbow_trace_type_new(kWork[kind], omp, nullptr, "region", "count");
  }
  constexpr const char* kRegions[] = {
      "synchronisation", "barrier",   "implicit barrier", "explicit barrier",           "barrier of the runtime system",
      "taskwait",        "taskgroup", "reduction",        "barrier after work-sharing", "barrier after a region",
      "barrier of teams"};
  for (std::size_t kind = 0; kind < regions_.size(); ++kind) {
    regions_[kind] = elbow_trace_type_new(kRegions[kind], omp, nullptr, "region", nullptr);
  }
  if (regions_.back() == nullptr || dependency_ == nullptr) {
    return false;
  }
  elbow_trace_text(parallel, 0, runtime == nullptr ? "OpenMP" : runtime);
  return true;
}

const elbow_trace_type* OmpTypes::work(ompt_work_t kind) const {
  const auto place = static_cast<std::size_t>(kind);
  return work_[place < work_.size() ? place : 0];
}

const elbow_trace_type* OmpTypes::region(ompt_sync_region_t kind) const {
  const auto place = static_cast<std::size_t>(kind);
  return regions_[place < regions_.size() ? place : 0];
}

const elbow_trace_type* OmpTypes::type_at(const void* code) {
  thread_local const void* last = nullptr;
  thread_local const elbow_trace_type* last_type = nullptr;
  if (last_type != nullptr && last == code) {
    return last_type;
  }
  const std::lock_guard lock_types(mutex_);
  const elbow_trace_type*& type = types_[code];
  if (type == nullptr) {
    type = elbow_trace_type_new(place_of(code).c_str(), task_category_, nullptr, "task", "parent");
  }
  last = code;
  last_type = type;
  return type;
}

OmpTask* OmpTypes::create(OmpTask* parent, bool untied, const void* code) {
  const elbow_trace_type* type = type_at(code);
  if (type == nullptr) {
    return nullptr;
  }
  auto* task = new OmpTask;
  task->number = next_task();
  task->type = type;
  task->parent = parent;
  task->of = parent == nullptr ? 0 : parent->number;
  task->untied = untied;
  elbow_trace_event(create_, 0, task->number, task->of);
  return task;
}

void OmpTypes::depends(OmpTask& task, const ompt_dependence_t* dependences, int count) {
  if (task.parent == nullptr) {
    return;
  }
  std::vector<std::uint64_t> waits;
  std::vector<Use> uses;
  for (int i = 0; i < count; ++i) {
    // Dependences of loops (ordered) are no tasks'.
    if (dependences[i].dependence_type != ompt_dependence_type_source &&
        dependences[i].dependence_type != ompt_dependence_type_sink) {
      uses.push_back({dependences[i].variable.ptr, access_of(dependences[i].dependence_type)});
    }
  }
  task.parent->children.use(uses, task.number, waits);
  for (const std::uint64_t other : each_once(waits, task.number)) {
    elbow_trace_event(dependency_, 0, other, task.number);
  }
}

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
