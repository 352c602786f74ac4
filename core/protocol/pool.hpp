// Computing threads: persistent, one per core, parked on a condition variable whenever nothing is computed.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/kernel.hpp"
#include "observe/observer.hpp"
#include "protocol/chunk_log.hpp"

namespace elbowroom {

struct SteadyRule {
  std::size_t window = 7;
  double cov = 0.05;
};

// One bound thread. post() hands it a task, wait() returns when it is done and rethrows what it threw.
class BoundThread {
 public:
  BoundThread(int core, std::function<void(int)> bind);
  ~BoundThread();
  BoundThread(const BoundThread&) = delete;
  BoundThread& operator=(const BoundThread&) = delete;

  void post(std::function<void()> task);
  void wait();
  int core() const { return core_; }

 private:
  void loop(const std::function<void(int)>& bind);

  const int core_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;
  std::exception_ptr error_;
  bool busy_ = false;
  bool quit_ = false;
  std::thread thread_;
};

// Waits for the threads of all slots, then rethrows what the last one of those that threw has thrown.
template <typename Slot>
void wait_for_all(const std::vector<Slot*>& slots) {
  std::exception_ptr error;
  for (Slot* slot : slots) {
    try {
      slot->thread.wait();
    } catch (...) {
      error = std::current_exception();
    }
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

// What one thread runs: a worker, and how many of its items make a chunk (0: not known yet, found by the pool).
struct ComputingJob {
  std::unique_ptr<Worker> worker;
  std::uint64_t items_per_chunk = 0;
  std::string name = {};  // of the kernel, in a trace
};

// What one computing thread did during a phase.
struct ComputingReport {
  int core = -1;
  const std::vector<Chunk>* chunks = nullptr;  // valid until the next start()
  bool steady = false;
  bool valid = true;  // Worker::validate() after the phase
};

// Runs workers in chunks of about a millisecond until told to stop.
class ComputingPool {
 public:
  // `bind` binds the calling thread to a core, and throws when it cannot.
  explicit ComputingPool(std::function<void(int)> bind);
  ~ComputingPool();

  // One thread per core, in this order; threads of other cores stay parked.
  void use(const std::vector<int>& cores);
  // Runs `task(i)` on the i-th computing thread, on all at once; returns when all are done.
  void each(const std::function<void(std::size_t)>& task);
  // The same in two parts: posts, and waits until all are done.
  void begin(const std::function<void(std::size_t)>& task);
  void finish();
  // Starts computing: jobs[i] on the i-th thread. The jobs stay the caller's and must outlive stop(), as must the
  // observer (may be null), which the threads join.
  void start(const std::vector<ComputingJob*>& jobs, const SteadyRule& rule, PhaseObserver* observer);
  // Time from which all threads are steady (start of the latest first steady window), 0 as long as they are not.
  std::int64_t steady_since() const;
  // Time from which all threads are warm (cold chunks over), 0 as long as they are not.
  std::int64_t warm_since() const;
  // Stops computing, validates, and tells what each thread did.
  std::vector<ComputingReport> stop();
  bool running() const { return running_; }

 private:
  struct Slot;
  std::int64_t latest(std::atomic<std::int64_t> Slot::*time) const;

  std::function<void(int)> bind_;
  std::vector<std::unique_ptr<Slot>> all_;  // every thread made so far
  std::vector<Slot*> used_;
  std::atomic<bool> stop_{false};
  bool running_ = false;
};

}  // namespace elbowroom
