#include "elbowroom/taskflow.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <new>
#include <optional>
#include <queue>
#include <stdexcept>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "c_interface.hpp"
#include "graph.hpp"
#include "kept_data.hpp"
#include "restraint.hpp"

namespace {

using namespace elbowroom::taskflow;

// Tasks that are submitted before ready data are sent, where other threads compute meanwhile: one that submits late, because
// it had no core, else misses recipients. They are submitted in less than a millisecond.
constexpr std::size_t kHold = 500;

constexpr std::chrono::milliseconds kStuck(10);

constexpr std::chrono::microseconds kAttentive(200);  // after something happened, a wait looks without a pause
constexpr std::chrono::microseconds kLongest(100);    // between two looks later

namespace c = elbowroom::c_interface;

struct Failure : std::system_error {
  Failure(int error, const std::string& text) : std::system_error(error, std::generic_category()), sentence(text) {}
  const char* what() const noexcept override { return sentence.c_str(); }
  std::string sentence;
};

template <typename Call>
int guarded(const Call& call) {
  return c::guard([&] {
    call();
    return 0;
  });
}

// Sizes of the structs of the first release.
constexpr std::size_t kExecutor = offsetof(elbow_taskflow_executor, handles);
constexpr std::size_t kHandles = sizeof(elbow_taskflow_handles);
constexpr std::size_t kSettings = offsetof(elbow_taskflow_settings, send_at_once);
constexpr std::size_t kWay = sizeof(elbow_broadcast_way);
constexpr std::size_t kCounters = sizeof(elbow_taskflow_counters);

Settings graph_settings(const elbow_taskflow_settings& given) {
  Settings settings;
  settings.broadcasts = given.point_to_point == 0;
  settings.early = given.wait_released == 0;
  if (given.executor != nullptr && given.send_at_once == 0) settings.hold = kHold;
  return settings;
}

// An executor of the first release has none.
bool has_handles(const elbow_taskflow_executor& executor) {
  return executor.size > kExecutor && executor.handles != nullptr;
}

// The mode as the graph has it; throws std::invalid_argument.
Mode mode_of(int mode) {
  if (mode < ELBOW_TASKFLOW_READ || mode > ELBOW_TASKFLOW_READ_WRITE) {
    throw std::invalid_argument(
        "mode " + std::to_string(mode) +
        ": is unknown; use ELBOW_TASKFLOW_READ, ELBOW_TASKFLOW_WRITE or ELBOW_TASKFLOW_READ_WRITE");
  }
  return static_cast<Mode>(mode);
}

}  // namespace

struct elbow_taskflow final : Actions {
  elbow_taskflow(elbow_broadcast* own, int own_rank, int size, const elbow_taskflow_settings& given)
      : broadcast(own),
        here(own_rank),
        settings(given),
        way(c::taken_or_zeros(given.way, "way", kWay)),
        has_way(given.way != nullptr) {
    if (way.tree != nullptr) {
      tree = way.tree;
      way.tree = tree.c_str();
    }
    executor = c::taken_or_zeros(given.executor, "executor", kExecutor);
    if (executor.handles != nullptr) {
      kept.emplace(c::taken(executor.handles, "executor.handles", kHandles), executor.state);
    }
    graph.emplace(*this, kept ? *kept : memory, own_rank, size, graph_settings(given));
  }

  elbow_taskflow(const elbow_taskflow&) = delete;
  elbow_taskflow& operator=(const elbow_taskflow&) = delete;
  // After a failure, data are still acquired.
  ~elbow_taskflow() override {
    for (const auto& [operation, transfer] : transfers) kept->release(transfer.memory);
  }

  // A task that an executor runs, until it is over.
  struct Running {
    elbow_taskflow* flow;
    Task* task;
  };

  void run(Task& task) override {
    if (settings.executor == nullptr) {
      ready.push({task.priority, ++count, &task});
    } else if (!restraint.keep(task)) {
      hand_over(task);
    }
  }

  void hand_over(Task& task) {
    auto* const handed = new Running{this, &task};
    ++running;
    const int failed = kept ? kept->run(task, compute_on, note_over, handed)
                            : executor.run(executor.state, task.priority, compute, handed);
    if (failed == 0) return;
    --running;
    delete handed;
    throw Failure(EAGAIN, "executor: refuses a task; see what it says of itself");
  }

  static void compute(void* argument) {
    compute_on(argument, static_cast<Running*>(argument)->task->buffers.data());
    note_over(argument);
  }

  static void compute_on(void* argument, void* const* buffers) {
    const Running& own = *static_cast<Running*>(argument);
    own.flow->restraint.run(*own.task, buffers);
  }

  static void note_over(void* argument) {
    const Running own = *static_cast<Running*>(argument);
    delete static_cast<Running*>(argument);
    const std::lock_guard lock(own.flow->mutex);
    own.flow->over.push_back(own.task);
    own.flow->task_over.notify_one();
  }

  Operation receive(int root, Data data, std::span<std::byte> bytes) override {
    elbow_broadcast_operation operation = 0;
    if (kept) kept->acquire(bytes.data(), ELBOW_TASKFLOW_WRITE);
    check(elbow_broadcast_receive(broadcast, 0, root, data, bytes.data(), bytes.size(), &operation));
    if (kept) transfers[operation] = {bytes.data(), true};
    return operation;
  }

  Operation send(Data data, std::span<const std::byte> bytes, std::span<const Destination> recipients) override {
    elbow_broadcast_operation operation = 0;
    void* const place = const_cast<std::byte*>(bytes.data());
    if (kept) kept->acquire(place, ELBOW_TASKFLOW_READ);
    list.clear();
    for (const auto& [rank, priority] : recipients) list.push_back({rank, priority});
    check(elbow_broadcast_send(broadcast, 0, data, bytes.data(), bytes.size(), list.data(), list.size(),
                               has_way ? &way : nullptr, &operation));
    if (kept) transfers[operation] = {place, false};
    return operation;
  }

  // Received data may be read, while they are forwarded from memory.
  void received(Operation operation) {
    if (kept && transfers.at(operation).writes) {
      Transfer& transfer = transfers.at(operation);
      transfer.writes = false;
      kept->release(transfer.memory);
      kept->acquire(transfer.memory, ELBOW_TASKFLOW_READ);
    }
    graph->received(operation);
  }

  void released(Operation operation) {
    if (kept) kept->release(transfers.extract(operation).mapped().memory);
    graph->released(operation);
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
    restraint.look();
    Task* const task = next();
    if (task == nullptr) return any;
    if (executor.run != nullptr) {
      hand_over(*task);
    } else {
      restraint.run(*task, task->buffers.data());
      graph->finish(*task);
    }
    return true;
  }

  // Of those that are to start here: a guard may let some wait. NULL: none.
  Task* next() {
    while (!ready.empty()) {
      Task& task = *ready.top().task;
      ready.pop();
      if (!restraint.keep(task)) return &task;
    }
    return restraint.release(running == 0);
  }

  // Lets others have the core while nothing can be done: at first for a moment, later until a task is over, or for a little
  // longer each time.
  void pause(std::chrono::steady_clock::duration quiet) {
    if (quiet < kAttentive) {
      sched_yield();
      return;
    }
    std::unique_lock lock(mutex);
    if (over.empty()) task_over.wait_for(lock, std::min<std::chrono::steady_clock::duration>(quiet / 16, kLongest));
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
        pause(std::chrono::steady_clock::now() - moved);
      }
    }
  }

  void wait() {
    graph->close();
    auto moved = std::chrono::steady_clock::now();
    while (!graph->idle()) {
      const auto now = std::chrono::steady_clock::now();
      if (step()) {
        moved = now;
      } else {
        pause(now - moved);
      }
    }
    if (kept) kept->bring_home();
  }

  // A call after which the flow cannot go on fails again: a task that was submitted by halves never ends.
  template <typename Call>
  void attempt(const Call& call) {
    if (!broken.empty()) throw Failure(broken_by, broken);
    try {
      call();
    } catch (const std::invalid_argument&) {
      throw;
    } catch (const Failure& failure) {
      broken_by = failure.code().value();
      broken = failure.what();
      throw;
    } catch (const std::exception& error) {
      broken_by = EIO;
      broken = error.what();
      throw;
    }
  }

  bool take_events() {
    bool any = false;
    elbow_broadcast_event event{};
    event.size = sizeof event;
    for (;;) {
      const int found = elbow_broadcast_next(broadcast, &event);
      if (found < 0) throw Failure(errno, elbow_broadcast_error());
      if (found == 0) return any;
      any = true;
      if (event.kind == ELBOW_BROADCAST_RECEIVED) received(event.operation);
      if (event.kind == ELBOW_BROADCAST_RELEASED) released(event.operation);
      if (event.kind == ELBOW_BROADCAST_FAILED) throw Failure(ECOMM, event.text);
      if (event.kind == ELBOW_BROADCAST_LOST) throw Failure(ECOMM, "rank " + std::to_string(event.rank) + ": is gone");
      // Others may compute for as long as their tasks take.
      if (event.kind == ELBOW_BROADCAST_STALLED && settings.stalled != nullptr) {
        settings.stalled(settings.stalled_state, event.text);
      }
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
  int here;  // this process
  elbow_taskflow_settings settings;
  elbow_broadcast_way way;
  bool has_way;
  std::string tree;
  elbow_taskflow_executor executor{};
  Memory memory;
  Restraint restraint;
  std::optional<KeptData> kept;  // by the executor
  std::optional<Graph> graph;
  // Of data that the executor keeps: where they are acquired, and whether for writing.
  struct Transfer {
    void* memory = nullptr;
    bool writes = false;
  };
  std::unordered_map<Operation, Transfer> transfers;
  std::priority_queue<Ready> ready;
  std::uint64_t count = 0;
  std::size_t running = 0;  // on the executor
  std::vector<Use> uses;
  std::vector<elbow_broadcast_recipient> list;
  std::vector<Task*> finished;
  std::string broken;  // why the flow cannot go on
  int broken_by = 0;
  std::mutex mutex;
  std::condition_variable task_over;
  std::vector<Task*> over;  // under the mutex
};

extern "C" {

elbow_taskflow* elbow_taskflow_new(elbow_broadcast* broadcast, int rank, int size,
                                   const elbow_taskflow_settings* settings) {
  elbow_taskflow* result = nullptr;
  guarded([&] {
    if (broadcast == nullptr) throw std::invalid_argument("broadcast: is NULL; see elbow_broadcast_error()");
    const elbow_taskflow_settings given = c::taken_or_zeros(settings, "settings", kSettings);
    if (given.executor != nullptr && given.executor->run == nullptr && !has_handles(*given.executor)) {
      throw std::invalid_argument("executor: run is NULL; give the function, or no executor");
    }
    if (rank < 0 || rank >= size) {
      throw std::invalid_argument("rank " + std::to_string(rank) + ": is none of " + std::to_string(size));
    }
    result = new elbow_taskflow(broadcast, rank, size, given);
  });
  return result;
}

void elbow_taskflow_free(elbow_taskflow* flow) { delete flow; }

int elbow_taskflow_register(elbow_taskflow* flow, void* memory, size_t size, int owner, elbow_taskflow_data* data) {
  return guarded([&] {
    c::refuse_null(flow, "flow");
    c::refuse_null(data, "data");
    *data = flow->graph->add(static_cast<std::byte*>(memory), size, owner);
    if (flow->kept && owner == flow->here) flow->kept->add(memory, size);
  });
}

int elbow_taskflow_submit(elbow_taskflow* flow, elbow_taskflow_kernel kernel, const void* argument, size_t size,
                          const elbow_taskflow_use* uses, size_t count, int priority, int rank) {
  return guarded([&] {
    c::refuse_null(flow, "flow");
    if (count > 0) c::refuse_null(uses, "uses");
    if (size > 0) c::refuse_null(argument, "argument");
    if (kernel == nullptr) throw std::invalid_argument("kernel: is NULL; give the function");
    flow->uses.clear();
    int writer = rank;
    for (size_t i = 0; i < count; ++i) {
      flow->uses.push_back({uses[i].data, mode_of(uses[i].mode)});
      if (rank == ELBOW_TASKFLOW_ANYWHERE && uses[i].mode != ELBOW_TASKFLOW_READ)
        writer = flow->graph->owner(uses[i].data);
    }
    if (writer == ELBOW_TASKFLOW_ANYWHERE) {
      throw std::invalid_argument(
          "rank: ELBOW_TASKFLOW_ANYWHERE is where the task writes, and it writes nothing; name a rank");
    }
    flow->attempt([&] {
      flow->graph->submit(kernel, {static_cast<const std::byte*>(argument), size}, flow->uses, priority, writer);
      // An executor's threads are to find their next tasks while others are submitted.
      if (flow->settings.executor != nullptr) flow->step();
      flow->keep_window();
    });
  });
}

int elbow_taskflow_expect(elbow_taskflow* flow, elbow_taskflow_data data, size_t recipients) {
  return guarded([&] {
    c::refuse_null(flow, "flow");
    flow->graph->expect(data, recipients);
  });
}

int elbow_taskflow_flush(elbow_taskflow* flow, elbow_taskflow_data data) {
  return guarded([&] {
    c::refuse_null(flow, "flow");
    flow->graph->flush(data);
  });
}

int elbow_taskflow_progress(elbow_taskflow* flow) {
  return guarded([&] {
    c::refuse_null(flow, "flow");
    flow->attempt([&] {
      flow->graph->close();
      flow->step();
    });
  });
}

int elbow_taskflow_wait(elbow_taskflow* flow) {
  return guarded([&] {
    c::refuse_null(flow, "flow");
    flow->attempt([&] { flow->wait(); });
  });
}

int elbow_taskflow_count(elbow_taskflow* flow, elbow_taskflow_counters* counters) {
  return guarded([&] {
    c::refuse_null(flow, "flow");
    const Counters& now = flow->graph->counters();
    const elbow_taskflow_counters given{sizeof given, now.tasks, now.data,     now.broadcasts,
                                        now.complete, now.late,  now.messages, now.most};
    c::check_size(counters, "counters", kCounters);
    c::give(given, counters);
  });
}

const char* elbow_taskflow_version(void) { return ELBOWROOM_VERSION; }

const char* elbow_taskflow_error(void) { return c::last_error; }

}  // extern "C"
