#include "guard/starpu/policy.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <string_view>

#include "guard/movement.hpp"
#include "guard/starpu/codelets.hpp"

namespace elbowroom::guard {
namespace {

constexpr std::uint64_t kLongestWait = 100'000'000;  // ns: then a task runs, whatever moves
constexpr int kMostSetAside = 32;                    // tasks in one call
constexpr std::size_t kMostHeld = 4096;
constexpr long kNap = 50'000;  // ns, of a worker that has nothing to do while messages move

std::string setting_of(const char* name) {
  const char* const given = std::getenv(name);
  return given == nullptr ? "" : given;
}

// Tasks that the site's policy gave to a worker, and that wait: those of higher priority first, of equal ones the oldest.
class HeldTasks {
 public:
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }
  bool full() const { return count_.load(std::memory_order_relaxed) >= kMostHeld; }

  void add(starpu_task* task, int worker, std::uint64_t now) {
    const std::lock_guard lock(mutex_);
    auto place = tasks_.end();
    while (place != tasks_.begin() && std::prev(place)->task->priority < task->priority) {
      --place;
    }
    tasks_.insert(place, {task, worker, now});
    count_.store(tasks_.size(), std::memory_order_relaxed);
  }

  // The first one that `worker` may run of those that wait since `until` at least; NULL where there is none. `any`: also one
  // that another worker got.
  starpu_task* take(elbow_guard* board, int worker, bool any, std::uint64_t until) {
    if (empty()) {
      return nullptr;
    }
    const std::lock_guard lock(mutex_);
    for (auto held = tasks_.begin(); held != tasks_.end(); ++held) {
      if (held->since <= until && (held->worker == worker || (any && runs(worker, held->task)))) {
        starpu_task* const task = held->task;
        elbow_guard_held(board, elbow_guard_now() - held->since);
        tasks_.erase(held);
        count_.store(tasks_.size(), std::memory_order_relaxed);
        return task;
      }
    }
    return nullptr;
  }

 private:
  struct Held {
    starpu_task* task;
    int worker;
    std::uint64_t since;
  };

  static bool runs(int worker, starpu_task* task) {
    return ELBOW_STARPU(starpu_worker_can_execute_task_first_impl)(static_cast<unsigned>(worker), task, nullptr) != 0;
  }

  std::mutex mutex_;
  std::deque<Held> tasks_;
  std::atomic<std::size_t> count_ = 0;
};

// Workers by how near they are to the NIC: of a task that runs on a node without it, messages lose less.
class WorkerPlaces {
 public:
  WorkerPlaces() {
    for (std::atomic<int>& node : nodes_) {
      node = kUnknown;
    }
    const std::string given = setting_of("ELBOW_GUARD_NIC_NODE");
    nic_ = given.empty() ? kUnknown : std::atoi(given.c_str());
  }

  // Whether the calling worker is of the half that is spared first.
  bool is_spared(int worker) {
    const auto own = static_cast<std::size_t>(worker);
    if (nodes_[own] == kUnknown) {
      unsigned node = 0;
      syscall(SYS_getcpu, nullptr, &node, nullptr);
      nodes_[own] = static_cast<int>(node);
    }
    const unsigned count = ELBOW_STARPU(starpu_worker_get_count_by_type)(STARPU_CPU_WORKER);
    unsigned before = 0;  // workers that are spared before this one
    for (std::size_t other = 0; other < count && other < nodes_.size(); ++other) {
      before += std::pair(nodes_[other] != nic_, other) < std::pair(nodes_[own] != nic_, own) ? 1 : 0;
    }
    return before < (count + 1) / 2;
  }

 private:
  static constexpr int kUnknown = -1;
  std::array<std::atomic<int>, STARPU_NMAXWORKERS> nodes_{};
  int nic_;
};

struct Guarded {
  starpu_sched_policy site{};  // as it was
  elbow_guard* board = nullptr;
  bool keeps_workers = false;  // the site's policy plans which worker runs a task
  std::unique_ptr<Codelets> codelets;
  HeldTasks held;
  WorkerPlaces workers;
  Movement movement;
  std::atomic<std::uint64_t> seen = 0;
};

Guarded& guarded() {
  static auto* const all = new Guarded;  // workers may outlive main
  return *all;
}

const char* name_of(const starpu_codelet& codelet) {
  if (codelet.name != nullptr) {
    return codelet.name;
  }
  return codelet.model != nullptr && codelet.model->symbol != nullptr ? codelet.model->symbol : "task";
}

// NULL of tasks that do not count: they do nothing, or several workers run them together.
Codelet* codelet_of(starpu_task* task) {
  if (task->cl == nullptr || task->cl->where == STARPU_NOWHERE || task->cl->type != STARPU_SEQ) {
    return nullptr;
  }
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < STARPU_TASK_GET_NBUFFERS(task); ++i) {
    bytes += ELBOW_STARPU(starpu_data_get_size)(STARPU_TASK_GET_HANDLE(task, i));
  }
  return &guarded().codelets->find(task->cl, name_of(*task->cl), bytes);
}

bool is_memory_bound(starpu_task* task) {
  const Codelet* const codelet = codelet_of(task);
  return codelet != nullptr && codelet->bound() == Bound::kMemory;
}

bool messages_move_here() { return messages_move(guarded().board, guarded().movement); }

std::uint64_t setting_now() {
  Guarded& all = guarded();
  const std::uint64_t setting = elbow_guard_setting(all.board, kStarpuLever);
  if (setting != all.seen.load(std::memory_order_relaxed)) {
    all.seen.store(setting, std::memory_order_relaxed);
    elbow_guard_set(all.board, place_of_seen(kStarpuLever), setting);
  }
  return setting;
}

void back_off() {
  ELBOW_STARPU(starpu_worker_relax_on)();
  const timespec nap{0, kNap};
  nanosleep(&nap, nullptr);
  ELBOW_STARPU(starpu_worker_relax_off)();
}

// The next task of the site's policy that is not memory-bound; those before it are held.
starpu_task* pop_others(unsigned context, int worker) {
  Guarded& all = guarded();
  for (int i = 0; i < kMostSetAside; ++i) {
    starpu_task* const task = all.site.pop_task(context);
    if (task == nullptr || !is_memory_bound(task) || all.held.full()) {
      return task;
    }
    all.held.add(task, worker, elbow_guard_now());
  }
  return nullptr;
}

bool is_waiting(std::uint64_t setting, int worker) {
  return setting >= kHold || (setting == kSpare && guarded().workers.is_spared(worker));
}

// While messages move.
starpu_task* pop_beside(unsigned context, int worker, std::uint64_t setting, bool any) {
  Guarded& all = guarded();
  for (;;) {
    const std::uint64_t now = elbow_guard_now();
    starpu_task* task = all.held.take(all.board, worker, any, now - std::min(now, kLongestWait));
    task = task == nullptr ? pop_others(context, worker) : task;
    if (task == nullptr && !is_waiting(setting, worker)) {
      task = all.held.take(all.board, worker, any, now);
    }
    if (task != nullptr) {
      return task;
    }
    back_off();
#ifdef STARPU_NON_BLOCKING_DRIVERS
    return nullptr;  // StarPU asks again
#else
    // Nobody wakes the worker when the messages are over.
    if (all.held.empty() || !messages_move_here()) {
      return all.held.take(all.board, worker, any, now);
    }
#endif
  }
}

starpu_task* pop(unsigned context) {
  Guarded& all = guarded();
  const std::uint64_t setting = setting_now();
  if (setting == 0 && all.held.empty()) {
    return all.site.pop_task(context);
  }
  const int worker = ELBOW_STARPU(starpu_worker_get_id)();
  if (worker < 0 || ELBOW_STARPU(starpu_worker_get_type)(worker) != STARPU_CPU_WORKER) {
    return all.site.pop_task(context);
  }
  if (messages_move_here() && setting >= kPrefer) {
    return pop_beside(context, worker, setting, !all.keeps_workers);
  }
  starpu_task* const task = all.held.take(all.board, worker, !all.keeps_workers, elbow_guard_now());
  return task == nullptr ? all.site.pop_task(context) : task;
}

// What this worker runs.
struct Run {
  Codelet* codelet = nullptr;
  std::uint64_t begin = 0;
  bool beside = false;
};
thread_local Run run;

void before_task(starpu_task* task, unsigned context) {
  Guarded& all = guarded();
  if (all.site.pre_exec_hook != nullptr) {
    all.site.pre_exec_hook(task, context);
  }
  run.codelet = codelet_of(task);
  if (run.codelet != nullptr && run.codelet->wanted()) {
    run.beside = messages_move_here();
    run.begin = processor_time_now();
  } else {
    run.codelet = nullptr;
  }
}

void after_task(starpu_task* task, unsigned context) {
  Guarded& all = guarded();
  if (run.codelet != nullptr) {
    const std::uint64_t now = processor_time_now();
    if (messages_move_here() == run.beside) {  // else for a part of it
      run.codelet->add(static_cast<double>(now - run.begin) / 1e9, run.beside);
    }
    run.codelet = nullptr;
  }
  if (all.site.post_exec_hook != nullptr) {
    all.site.post_exec_hook(task, context);
  }
}

// dm, dmda, dmdas, ..., heft.
bool plans_workers(const char* name) {
  const std::string_view policy(name == nullptr ? "" : name);
  return policy.starts_with("dm") || policy.find("heft") != std::string_view::npos;
}

const char* word(Bound bound) {
  switch (bound) {
    case Bound::kMemory: return "memory";
    case Bound::kCompute: return "compute";
    case Bound::kUnknown: break;
  }
  return "unknown";
}

// A line of JSON for each codelet, in the folder that ELBOW_GUARD_CODELETS names.
void write_codelets(const Codelets& codelets) {
  const std::string folder = setting_of("ELBOW_GUARD_CODELETS");
  if (folder.empty()) {
    return;
  }
  const std::string path = folder + "/codelets-" + std::to_string(getpid()) + ".jsonl";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), std::fclose);
  if (!file) {
    std::fprintf(stderr, "elbowroom: %s cannot be written (%s)\n", path.c_str(), std::strerror(errno));
    return;
  }
  for (const Codelet* const one : codelets.all()) {
    const auto [alone, beside] = one->times();
    std::string name;
    for (const char letter : one->name()) {
      const bool plain = letter >= ' ' && letter != '"' && letter != '\\';
      name += plain ? letter : '?';
    }
    std::fprintf(file.get(),
                 "{\"codelet\": \"%s\", \"bytes\": %llu, \"bound\": \"%s\", \"marked\": %s, \"alone\": %llu, "
                 "\"beside\": %llu, \"log_loss\": %.6f}\n",
                 name.c_str(), static_cast<unsigned long long>(one->bytes()), word(one->bound()),
                 one->marked() ? "true" : "false", static_cast<unsigned long long>(alone.count()),
                 static_cast<unsigned long long>(beside.count()),
                 alone.count() > 0 && beside.count() > 0 ? beside.mean() - alone.mean() : 0.0);
  }
}

}  // namespace

void* starpu_function(const char* name) {
  void* const symbol = find_behind(name);
  if (symbol == nullptr) {
    std::fprintf(stderr, "elbowroom: this program's StarPU has no %s; run it without the lever starpu\n", name);
    std::abort();
  }
  return symbol;
}

std::string guard_policy(starpu_sched_policy& policy, elbow_guard* board) {
  Guarded& all = guarded();
  if (policy.pop_task == pop) {
    return "";
  }
  if (policy.push_task == nullptr || policy.pop_task == nullptr) {
    return "its scheduling policy does not hand out tasks one by one";
  }
  all.site = policy;
  all.board = board;
  all.keeps_workers = plans_workers(policy.policy_name);
  all.codelets =
      std::make_unique<Codelets>(setting_of("ELBOW_GUARD_MEMORY_BOUND"), setting_of("ELBOW_GUARD_COMPUTE_BOUND"));
  policy.pre_exec_hook = before_task;
  policy.post_exec_hook = after_task;
  policy.pop_task = pop;
  return "";
}

void end_policy() {
  Guarded& all = guarded();
  if (!all.codelets) {
    return;
  }
  write_codelets(*all.codelets);
  for (const std::string& mark : all.codelets->unused_marks()) {
    std::fprintf(stderr, "elbowroom: no codelet that ran is called %s (ELBOW_GUARD_MEMORY_BOUND, _COMPUTE_BOUND)\n",
                 mark.c_str());
  }
}

}  // namespace elbowroom::guard
