#include "elbowroom/taskflow.h"

#include <sched.h>

#include <cerrno>
#include <chrono>
#include <mutex>
#include <new>
#include <optional>
#include <queue>
#include <stdexcept>
#include <string>
#include <vector>

#include "graph.hpp"

namespace {

using namespace elbowroom::taskflow;

// Tasks that are submitted before ready data are sent, where other threads compute meanwhile: one that submits late, because
// it had no core, else misses recipients. They are submitted in less than a millisecond.
constexpr std::size_t kHold = 500;

constexpr std::chrono::milliseconds kStuck(10);

thread_local std::string last_error;

int refused(int error, std::string text) {
  last_error = std::move(text);
  errno = error;
  return -1;
}

struct Failure : std::runtime_error {
  Failure(int error, const std::string& text) : std::runtime_error(text), number(error) {}
  int number;
};

// Runs a call of the C interface: exceptions become errno and a sentence.
template <typename Call>
int guarded(const Call& call) {
  try {
    call();
    return 0;
  } catch (const std::bad_alloc&) {
    return refused(ENOMEM, "memory: is used up; limit the tasks under way by the field window");
  } catch (const std::invalid_argument& error) {
    return refused(EINVAL, error.what());
  } catch (const Failure& failure) {
    return refused(failure.number, failure.what());
  }
}

Settings graph_settings(const elbow_taskflow_settings& given) {
  Settings settings;
  settings.broadcasts = given.point_to_point == 0;
  settings.early = given.wait_released == 0;
  if (given.executor != nullptr) settings.hold = kHold;
  return settings;
}

// The mode as the graph has it; throws std::invalid_argument.
Mode mode_of(int mode) {
  if (mode < ELBOW_READ || mode > ELBOW_READ_WRITE) {
    throw std::invalid_argument("mode " + std::to_string(mode) +
                                ": is unknown; use ELBOW_READ, ELBOW_WRITE or ELBOW_READ_WRITE");
  }
  return static_cast<Mode>(mode);
}

}  // namespace

struct elbow_taskflow final : Actions {
  elbow_taskflow(elbow_broadcast* own, int rank, int size, const elbow_taskflow_settings& given)
      : broadcast(own), settings(given), tree(given.way.tree == nullptr ? "" : given.way.tree) {
    if (given.way.tree != nullptr) settings.way.tree = tree.c_str();
    if (given.executor != nullptr) executor = *given.executor;
    graph.emplace(*this, memory, rank, size, graph_settings(given));
  }

  // A task that an executor runs, until it is over.
  struct Running {
    elbow_taskflow* flow;
    Task* task;
  };

  void run(Task& task) override {
    if (executor.run == nullptr) {
      ready.push({task.priority, ++count, &task});
      return;
    }
    auto* const handed = new Running{this, &task};
    ++running;
    if (executor.run(executor.state, task.priority, compute, handed) == 0) return;
    --running;
    delete handed;
    throw Failure(EAGAIN, "executor: refuses a task; see what it says of itself");
  }

  static void compute(void* argument) {
    const Running own = *static_cast<Running*>(argument);
    delete static_cast<Running*>(argument);
    own.task->kernel(own.task->buffers.data(), own.task->argument.data());
    const std::lock_guard lock(own.flow->mutex);
    own.flow->over.push_back(own.task);
  }

  Operation receive(int root, Data data, std::span<std::byte> bytes) override {
    elbow_operation operation = 0;
    check(elbow_broadcast_receive(broadcast, 0, root, data, bytes.data(), bytes.size(), &operation));
    return operation;
  }

  Operation send(Data data, std::span<const std::byte> bytes, std::span<const Destination> recipients) override {
    elbow_operation operation = 0;
    list.clear();
    for (const auto& [rank, priority] : recipients) list.push_back({rank, priority});
    check(elbow_broadcast_send(broadcast, 0, data, bytes.data(), bytes.size(), list.data(), list.size(), &settings.way,
                               &operation));
    return operation;
  }

  static void check(int result) {
    if (result != 0) throw Failure(errno, elbow_broadcast_error());
  }

  // Everything that can be done now, with one task at most; whether anything was.
  bool step() {
    check(elbow_broadcast_progress(broadcast));
    bool any = take_events();
    {
      const std::lock_guard lock(mutex);
      over.swap(finished);
    }
    running -= finished.size();
    for (Task* const task : finished) graph->finish(*task);
    any = any || !finished.empty();
    finished.clear();
    if (ready.empty()) return any;
    Task& task = *ready.top().task;
    ready.pop();
    task.kernel(task.buffers.data(), task.argument.data());
    graph->finish(task);
    return true;
  }

  // Waits while more tasks are under way than the window allows. Where nothing goes on, the next tasks are needed: others may
  // wait for this process to receive what these read.
  void keep_window() {
    auto moved = std::chrono::steady_clock::now();
    while (settings.window > 0 && graph->live() > settings.window) {
      graph->close();
      if (step() || running > 0) {
        moved = std::chrono::steady_clock::now();
      } else if (std::chrono::steady_clock::now() - moved > kStuck) {
        return;
      } else {
        sched_yield();
      }
    }
  }

  bool take_events() {
    bool any = false;
    elbow_broadcast_event event{};
    for (;;) {
      const int found = elbow_broadcast_next(broadcast, &event);
      if (found < 0) throw Failure(errno, elbow_broadcast_error());
      if (found == 0) return any;
      any = true;
      if (event.kind == ELBOW_RECEIVED) graph->received(event.operation);
      if (event.kind == ELBOW_RELEASED) graph->released(event.operation);
      if (event.kind == ELBOW_FAILED) throw Failure(ECOMM, event.text);
      if (event.kind == ELBOW_LOST) throw Failure(ECOMM, "rank " + std::to_string(event.rank) + ": is gone");
      if (event.kind == ELBOW_STALLED) throw Failure(ETIMEDOUT, event.text);
    }
  }

  struct Ready {
    int priority;
    std::uint64_t number;
    Task* task;
    // Higher priorities first, then those that were ready first.
    bool operator<(const Ready& other) const {
      return priority != other.priority ? priority < other.priority : number > other.number;
    }
  };

  elbow_broadcast* broadcast;
  elbow_taskflow_settings settings;
  std::string tree;
  elbow_executor executor{};
  Memory memory;
  std::optional<Graph> graph;
  std::priority_queue<Ready> ready;
  std::uint64_t count = 0;
  std::size_t running = 0;  // on the executor
  std::vector<Use> uses;
  std::vector<elbow_recipient> list;
  std::vector<Task*> finished;
  std::mutex mutex;
  std::vector<Task*> over;  // under the mutex
};

extern "C" {

elbow_taskflow* elbow_taskflow_new(elbow_broadcast* broadcast, int rank, int size,
                                   const elbow_taskflow_settings* settings) {
  elbow_taskflow* result = nullptr;
  guarded([&] {
    if (broadcast == nullptr) throw std::invalid_argument("broadcast: is NULL; see elbow_broadcast_error()");
    if (rank < 0 || rank >= size) {
      throw std::invalid_argument("rank " + std::to_string(rank) + ": is none of " + std::to_string(size));
    }
    result = new elbow_taskflow(broadcast, rank, size, settings == nullptr ? elbow_taskflow_settings{} : *settings);
  });
  return result;
}

void elbow_taskflow_free(elbow_taskflow* flow) { delete flow; }

int elbow_taskflow_register(elbow_taskflow* flow, void* memory, size_t size, int owner, elbow_data* data) {
  return guarded([&] { *data = flow->graph->add(static_cast<std::byte*>(memory), size, owner); });
}

int elbow_taskflow_submit(elbow_taskflow* flow, elbow_kernel kernel, const void* argument, size_t size,
                          const elbow_use* uses, size_t count, int priority, int rank) {
  return guarded([&] {
    flow->uses.clear();
    int writer = rank;
    for (size_t i = 0; i < count; ++i) {
      flow->uses.push_back({uses[i].data, mode_of(uses[i].mode)});
      if (rank == ELBOW_ANYWHERE && uses[i].mode != ELBOW_READ) writer = flow->graph->owner(uses[i].data);
    }
    if (writer == ELBOW_ANYWHERE) {
      throw std::invalid_argument("rank: ELBOW_ANYWHERE is where the task writes, and it writes nothing; name a rank");
    }
    flow->graph->submit(kernel, {static_cast<const std::byte*>(argument), size}, flow->uses, priority, writer);
    // An executor's threads are to find their next tasks while others are submitted.
    if (flow->executor.run != nullptr) flow->step();
    flow->keep_window();
  });
}

int elbow_taskflow_expect(elbow_taskflow* flow, elbow_data data, size_t recipients) {
  return guarded([&] { flow->graph->expect(data, recipients); });
}

int elbow_taskflow_flush(elbow_taskflow* flow, elbow_data data) {
  return guarded([&] { flow->graph->flush(data); });
}

int elbow_taskflow_progress(elbow_taskflow* flow) {
  return guarded([&] {
    flow->graph->close();
    flow->step();
  });
}

int elbow_taskflow_wait(elbow_taskflow* flow) {
  return guarded([&] {
    flow->graph->close();
    while (!flow->graph->idle()) {
      if (!flow->step()) sched_yield();
    }
  });
}

int elbow_taskflow_count(elbow_taskflow* flow, elbow_taskflow_counters* counters) {
  const Counters& now = flow->graph->counters();
  *counters = {now.tasks, now.data, now.broadcasts, now.complete, now.late, now.messages, now.most};
  return 0;
}

const char* elbow_taskflow_error(void) { return last_error.c_str(); }

}  // extern "C"
