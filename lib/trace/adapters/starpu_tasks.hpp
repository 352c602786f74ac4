// StarPU's tasks as a trace has them: their numbers, types, names and what they wait for.
#pragma once

#include <starpu.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "elbowroom/trace.h"
#include "trace/adapters/access_order.hpp"
#include "trace/adapters/tag_order.hpp"
#include "trace/adapters/task_table.hpp"

namespace elbowroom::trace {

// The function of that name behind this library's own, in StarPU.
void* behind(const char* name);

template <typename F>
F* behind(F* /* its signature */, const char* name) {
  return reinterpret_cast<F*>(behind(name));
}

// StarPU's function, looked up once at each place.
#define ELBOW_STARPU(name)                                                \
  ([]() {                                                                 \
    static auto* const symbol = elbowroom::trace::behind(&::name, #name); \
    return symbol;                                                        \
  }())

class StarpuTasks {
 public:
  // Of the process; never destroyed, since workers may outlive main.
  static StarpuTasks& all();

  // Once, when StarPU starts: categories and types.
  bool start();
  bool recording() const { return recording_; }

  // Before StarPU gets the task: its number, its dependencies, and what is put around its functions.
  std::uint64_t submit(starpu_task* task);
  void refused(std::uint64_t number) const { elbow_trace_event(refused_, 0, number, 0); }
  void duplicate(const starpu_task* task, const starpu_task* copy);
  // `task` waits for the others.
  void declare(starpu_task* task, unsigned count, starpu_task* const others[]);
  void declare_tags(starpu_tag_t tag, unsigned count, const starpu_tag_t others[]);
  void forget_tag(starpu_tag_t tag) { tags_.forget(tag); }
  void forget_data(starpu_data_handle_t handle);
  void reduction(const starpu_codelet* reduce, const starpu_codelet* initialise);
  void forget_all();

  // The number of a task that was submitted; 0 of others.
  std::uint64_t known_number(const starpu_task* task);
  void registered(std::uint64_t bytes) const { elbow_trace_event(registered_, 0, bytes, 0); }

  // Around a codelet's function.
  void run(void (*function)(void**, void*), void** buffers, void* argument);
  // A task is ready; one without a function is done with it.
  void ready(std::uint64_t number) const { elbow_trace_event(ready_, 0, number, 0); }
  void passed(std::uint64_t number) const;

  // While the application waits in StarPU: the type's begin and end.
  const elbow_trace_type* waiting(const char* name);
  static void name_worker();

 private:
  const elbow_trace_type* type_of(const starpu_task* task);
  const elbow_trace_type* type_named(const char* name);
  std::uint64_t number_of(const starpu_task* task, bool to_submit);
  void depends(std::uint64_t waiting, std::uint64_t task) const;
  void data_of(const starpu_task* task, std::uint64_t number, bool ordered, std::uint64_t& bytes);
  bool by_starpu(const starpu_task* task);

  bool recording_ = false;
  int task_category_ = -1;
  int starpu_category_ = -1;
  const elbow_trace_type* submit_ = nullptr;
  const elbow_trace_type* refused_ = nullptr;
  const elbow_trace_type* ready_ = nullptr;
  const elbow_trace_type* registered_ = nullptr;
  const elbow_trace_type* dependency_ = nullptr;
  const elbow_trace_type* empty_ = nullptr;
  TaskTable table_;
  AccessOrder accesses_;
  TagOrder tags_;
  std::mutex mutex_;
  std::map<std::string, const elbow_trace_type*, std::less<>> types_;
  std::map<std::string, const elbow_trace_type*, std::less<>> waits_;
  std::atomic<bool> reduces_ = false;
  std::unordered_set<const starpu_codelet*> reductions_;
};

}  // namespace elbowroom::trace
