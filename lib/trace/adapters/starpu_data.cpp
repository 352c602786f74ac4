// What happens to StarPU's data: uses by tasks, inputs that workers fetch, copies between memory nodes and allocations there.
// Functions whose names begin with _starpu are StarPU's own (1.3): it calls them through its table of symbols, so that a
// preloaded library sees them.
#include <starpu.h>

#include <cstdint>

#include "elbowroom/trace.h"
#include "trace/adapters/starpu_tasks.hpp"

namespace elbowroom::trace {
namespace {

// null: the category is not named.
struct DataTypes {
  const elbow_trace_type* use = nullptr;
  const elbow_trace_type* fetch = nullptr;
  const elbow_trace_type* copy = nullptr;
  const elbow_trace_type* allocate = nullptr;
  const elbow_trace_type* free = nullptr;
};
DataTypes types;

thread_local std::uint64_t moved_data = 0;  // the handle whose copy this thread makes

// From its making to its end.
class Span {
 public:
  Span(const elbow_trace_type* type, std::uint32_t small, std::uint64_t first, std::uint64_t second)
      : type_(type), small_(small), first_(first), second_(second) {
    if (type_ != nullptr) elbow_trace_begin(type_, small_, first_, second_);
  }
  ~Span() {
    if (type_ != nullptr) elbow_trace_end(type_, small_, first_, second_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  const elbow_trace_type* type_;
  std::uint32_t small_;
  std::uint64_t first_;
  std::uint64_t second_;
};

}  // namespace

void watch_data() {
  if (const int data = named_category("data"); data >= 0 && types.use == nullptr) {
    types.use = elbow_trace_type_new("use", data, "mode", "task", "data");
    types.fetch = elbow_trace_type_new("fetch inputs", data, nullptr, "task", nullptr);
    types.copy = elbow_trace_type_new("copy", data, "nodes", "bytes", "data");
    types.allocate = elbow_trace_type_new("allocate", data, "node", "bytes", nullptr);
    types.free = elbow_trace_type_new("free", data, "node", "bytes", nullptr);
  }
}

void record_use(std::uint64_t number, starpu_data_handle_t handle, unsigned mode) {
  if (types.use != nullptr) {
    elbow_trace_event(types.use, mode & (STARPU_RW | STARPU_SCRATCH | STARPU_REDUX), number,
                      StarpuTasks::all().data_number(handle));
  }
}

}  // namespace elbowroom::trace

using elbowroom::trace::Span;
using elbowroom::trace::StarpuTasks;
using elbowroom::trace::types;

extern "C" {

#define ELBOW_PRELOADED __attribute__((visibility("default")))

ELBOW_PRELOADED int _starpu_fetch_task_input(starpu_task* task, void* job, int async) {
  const auto known = types.fetch == nullptr ? std::nullopt : StarpuTasks::all().known(task);
  const Span span(known ? types.fetch : nullptr, 0, known ? known->number : 0, 0);
  return ELBOW_STARPU(_starpu_fetch_task_input)(task, job, async);
}

ELBOW_PRELOADED int _starpu_driver_copy_data_1_to_1(starpu_data_handle_t handle, void* from, void* to, unsigned no_read,
                                                    void* request, int may_allocate, int prefetch) {
  const std::uint64_t before = elbowroom::trace::moved_data;
  elbowroom::trace::moved_data = types.copy == nullptr ? 0 : StarpuTasks::all().data_number(handle);
  const int result =
      ELBOW_STARPU(_starpu_driver_copy_data_1_to_1)(handle, from, to, no_read, request, may_allocate, prefetch);
  elbowroom::trace::moved_data = before;
  return result;
}

ELBOW_PRELOADED int starpu_interface_copy(std::uintptr_t source, std::size_t source_offset, unsigned source_node,
                                          std::uintptr_t target, std::size_t target_offset, unsigned target_node,
                                          std::size_t size, void* async) {
  const Span span(types.copy, source_node << 16 | target_node, size, elbowroom::trace::moved_data);
  return ELBOW_STARPU(starpu_interface_copy)(source, source_offset, source_node, target, target_offset, target_node,
                                             size, async);
}

ELBOW_PRELOADED std::uintptr_t starpu_malloc_on_node_flags(unsigned node, std::size_t size, int flags) {
  const std::uintptr_t memory = ELBOW_STARPU(starpu_malloc_on_node_flags)(node, size, flags);
  if (types.allocate != nullptr && memory != 0) {
    elbow_trace_event(types.allocate, node, size, 0);
  }
  return memory;
}

ELBOW_PRELOADED void starpu_free_on_node_flags(unsigned node, std::uintptr_t memory, std::size_t size, int flags) {
  if (types.free != nullptr) {
    elbow_trace_event(types.free, node, size, 0);
  }
  ELBOW_STARPU(starpu_free_on_node_flags)(node, memory, size, flags);
}

}  // extern "C"
