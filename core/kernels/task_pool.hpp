// One list of tasks that all workers of a process share, as the central scheduler of a task-based runtime system has it,
// and how they wait for tasks (Denis et al. 2021, section 5.4).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace elbowroom {

// The smallest task: it counts how often it was executed.
class Task {
 public:
  void execute() { runs_.fetch_add(1, std::memory_order_acq_rel); }
  int runs() const { return runs_.load(std::memory_order_acquire); }

 private:
  std::atomic<int> runs_{0};
};

// How many `nop` instructions a worker waits after an unsuccessful poll: 1, doubled each time up to `most`.
class Backoff {
 public:
  explicit Backoff(std::uint32_t most) : most_(most < 1 ? 1 : most) {}

  void wait();
  void reset() { next_ = 1; }
  std::uint32_t next() const { return next_; }  // nops of the next wait

 private:
  std::uint32_t most_;
  std::uint32_t next_ = 1;
};

// Tasks in the order in which they came, behind one mutex (a pthread mutex, which sleeps when it is contended for long).
// On lines of its own, which travel from core to core at each poll.
class alignas(64) TaskPool {
 public:
  // What one worker saw; on a line of its own, so that counting adds no traffic to that of the list.
  struct alignas(64) Seat {
    std::uint64_t polls = 0;  // looks at the list
    std::uint64_t waits = 0;  // waits because the pool was paused
  };

  // How long a worker of a paused pool blocks before it looks whether it should go on.
  static constexpr std::chrono::milliseconds kPausedWait{5};

  void push(std::shared_ptr<Task> task);
  // The next task; nullptr when there is none. While the pool is paused it does not look, but blocks until resume(), for
  // kPausedWait at most.
  std::shared_ptr<Task> poll(Seat& seat);
  // The next task, paused or not, without counting as a poll.
  std::shared_ptr<Task> take();
  void pause();
  void resume();

 private:
  std::shared_ptr<Task> front();  // with the mutex held

  std::mutex mutex_;
  std::deque<std::shared_ptr<Task>> tasks_;
  bool paused_ = false;
  std::condition_variable resumed_;
};

}  // namespace elbowroom
