#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/task_pool.hpp"
#include "kernels/workers.hpp"

namespace elbowroom {
namespace {

// Each worker pushes a task in so many calls of run(), about one in 64 ms: often enough that each phase has some, and rare
// enough that the short waits behind it are below a thousandth of all.
constexpr std::uint64_t kRunsPerTask = 64;
constexpr std::chrono::seconds kPatience{1};  // with another worker that has taken a task and not yet executed it
constexpr double kMostCpu = 0.1;              // of the time: what a worker that is not blocked exceeds by far

// The pool that workers of this process have in common, as long as there is one of them: workers are made one by one, and
// contend for one list only if they find the same.
std::shared_ptr<TaskPool> common_pool(bool paused) {
  static std::mutex mutex;
  static std::weak_ptr<TaskPool> pools[2];
  const std::lock_guard lock(mutex);
  std::shared_ptr<TaskPool> pool = pools[paused].lock();
  if (!pool) {
    pool = std::make_shared<TaskPool>();
    if (paused) pool->pause();
    pools[paused] = pool;
  }
  return pool;
}

// An item is a poll with the wait behind it.
class Polling final : public Worker {
 public:
  explicit Polling(std::uint32_t most_nops) : pool_(common_pool(false)), backoff_(most_nops) {}

  void first_touch() override {
    backoff_.reset();
    seat_ = {};
    pushed_.clear();
    runs_ = polled_ = 0;
  }
  std::uint64_t run(std::uint64_t items) override {
    if (runs_++ % kRunsPerTask == 0) {
      pushed_.push_back(std::make_shared<Task>());
      pool_->push(pushed_.back());
    }
    for (std::uint64_t i = 0; i < items; ++i) {
      if (const std::shared_ptr<Task> task = pool_->poll(seat_)) {
        task->execute();
        backoff_.reset();
      } else {
        backoff_.wait();
      }
    }
    polled_ += items;
    return items;
  }
  // The list was polled as often as counted, and each task this worker has ever pushed was executed once, by whomever. What
  // is left in the list when all stop is executed here.
  bool validate() const override {
    while (const std::shared_ptr<Task> task = pool_->take()) task->execute();
    const auto until = std::chrono::steady_clock::now() + kPatience;
    const auto waiting = [](const std::shared_ptr<Task>& task) { return task->runs() == 0; };
    while (std::any_of(pushed_.begin(), pushed_.end(), waiting) && std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
    return seat_.polls == polled_ && seat_.waits == 0 &&
           std::all_of(pushed_.begin(), pushed_.end(), [](const auto& task) { return task->runs() == 1; });
  }
  std::uint64_t items_per_sweep() const override { return 0; }

 private:
  std::shared_ptr<TaskPool> pool_;
  Backoff backoff_;
  TaskPool::Seat seat_;
  std::vector<std::shared_ptr<Task>> pushed_;
  std::uint64_t runs_ = 0;
  std::uint64_t polled_ = 0;
};

double cpu_seconds_of_this_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// An item is a wait of TaskPool::kPausedWait, so that the thread answers when it is told to stop.
class Paused final : public Worker {
 public:
  Paused() : pool_(common_pool(true)) {}

  void first_touch() override {
    seat_ = {};
    waited_ = 0;
    cpu_ = wall_ = 0;
  }
  std::uint64_t run(std::uint64_t items) override {
    const double cpu = cpu_seconds_of_this_thread();
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < items; ++i) {
      if (const std::shared_ptr<Task> task = pool_->poll(seat_)) task->execute();
    }
    wall_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    cpu_ += cpu_seconds_of_this_thread() - cpu;
    waited_ += items;
    return items;
  }
  // It was blocked all the time: never looked at the list, and used next to no CPU.
  bool validate() const override {
    const double least = std::chrono::duration<double>(TaskPool::kPausedWait).count() * static_cast<double>(waited_);
    return seat_.polls == 0 && seat_.waits == waited_ && wall_ >= 0.99 * least && cpu_ <= kMostCpu * wall_;
  }
  std::uint64_t items_per_sweep() const override { return 0; }

 private:
  std::shared_ptr<TaskPool> pool_;
  TaskPool::Seat seat_;
  std::uint64_t waited_ = 0;
  double cpu_ = 0;   // seconds of this thread in run()
  double wall_ = 0;  // seconds in run()
};

}  // namespace

std::unique_ptr<Worker> make_polling(int most_nops) {
  return std::make_unique<Polling>(static_cast<std::uint32_t>(std::max(most_nops, 1)));
}
std::unique_ptr<Worker> make_paused() { return std::make_unique<Paused>(); }

}  // namespace elbowroom
