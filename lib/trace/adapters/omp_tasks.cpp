#include "trace/adapters/omp_tasks.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "trace/adapters/numbers.hpp"

namespace elbowroom::trace {
namespace {

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

}  // namespace

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

}  // namespace elbowroom::trace
