// What tasks and sends took.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "observe/counters.hpp"
#include "observe/processor_events.hpp"

namespace elbowroom::kernels {

// `product`: of matrices, or of a matrix and a vector. `vector`: all else that a CG computes.
enum class Kind { product, vector };

struct Send {
  std::int64_t ready;  // ns: what is sent is complete, and whoever communicates has it
  std::int64_t done;   // ns: the MPI has told the sender that the memory may be written again
  std::size_t bytes;
};

// Seconds in which at least one of them was under way.
double under_way(std::vector<Send> sends);

// What one rank did in one run.
struct Tally {
  double product_s = 0;  // in tasks, summed over the computing threads
  double vector_s = 0;
  std::size_t tasks = 0;
  std::vector<Send> sends;   // of pieces of matrices and vectors; sums of a few numbers are not among them
  std::size_t messages = 0;  // sent, with those
  std::size_t bytes = 0;
  std::optional<double> stalled;  // share of the tasks' cycles that waited for memory, where counters tell

  double busy_s() const { return product_s + vector_s; }
};

// Each computing thread writes to a slot of its own; sends are told by one thread. take() is called when nothing runs.
class Meter {
 public:
  explicit Meter(std::vector<int> cores)
      : slots_(cores.size()), cores_(std::move(cores)), stalls_(processor_events_here().memory_stalls) {}

  // Runs a task on thread `thread`, and looks at the clock and at the core.
  template <typename Body>
  void run(std::size_t thread, Kind kind, const Body& body);
  void sent(const Send& send, bool counted);
  // Everything since the last call.
  Tally take();
  // Whether a task was seen on another core than its thread's, ever.
  bool strayed() const;

 private:
  struct alignas(64) Slot {
    std::int64_t ns[2] = {0, 0};  // by kind
    std::size_t tasks = 0;
    bool strayed = false;
    bool opened = false;
    std::vector<Counter> counters;  // cycles, then those stalled on memory; none where one does not work
    double counted[2] = {0, 0};     // of all cycles, and of stalled ones
  };
  void begin(Slot& slot, int core);
  static void count(Slot& slot, double sign);

  std::vector<Slot> slots_;
  std::vector<int> cores_;
  std::vector<ProcessorEvent> stalls_;
  Tally tally_;
};

template <typename Body>
void Meter::run(std::size_t thread, Kind kind, const Body& body) {
  Slot& slot = slots_[thread];
  begin(slot, cores_[thread]);
  count(slot, -1);
  const std::int64_t start = now_ns();
  body();
  slot.ns[kind == Kind::product ? 0 : 1] += now_ns() - start;
  count(slot, 1);
  ++slot.tasks;
}

}  // namespace elbowroom::kernels
