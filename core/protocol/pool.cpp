#include "protocol/pool.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "observe/tracing.hpp"
#include "protocol/steady.hpp"

namespace elbowroom {
namespace {

constexpr double kChunkNs = 1e6;
constexpr std::size_t kLogCapacity = std::size_t{1} << 15;  // 32 s of chunks before neighbours are merged

}  // namespace

BoundThread::BoundThread(int core, std::function<void(int)> bind)
    : core_(core), thread_([this, bind = std::move(bind)] { loop(bind); }) {}

BoundThread::~BoundThread() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BoundThread::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    task_ = std::move(task);
    busy_ = true;
  }
  changed_.notify_all();
}

void BoundThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
  if (error_) {
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

void BoundThread::loop(const std::function<void(int)>& bind) {
  bool bound = false;
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return quit_ || task_; });
    if (!task_) {
      return;
    }
    const auto task = std::exchange(task_, nullptr);
    lock.unlock();
    std::exception_ptr error;
    try {
      if (!bound) {
        bind(core_);
        bound = true;
      }
      task();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    busy_ = false;
    changed_.notify_all();
  }
}

struct ComputingPool::Slot {
  Slot(int core, const std::function<void(int)>& bind) : thread(core, bind), log(kLogCapacity) {}

  void compute(ComputingJob& job, const SteadyRule& rule, const std::atomic<bool>& stop);
  void learn_chunk(ComputingJob& job) const;

  BoundThread thread;
  ChunkLog log;
  std::atomic<std::int64_t> warm{0};
  std::atomic<std::int64_t> steady{0};
  ComputingReport report;
};

namespace {

// Workers never cross the end of their arrays, and cache-resident ones sweep them many times in one chunk.
std::uint64_t run_items(Worker& worker, std::uint64_t items) {
  std::uint64_t done = 0;
  while (done < items) {
    done += worker.run(items - done);
  }
  return done;
}

// Items that take about a millisecond, found by running ever more of them.
std::uint64_t first_guess(Worker& worker) {
  std::uint64_t items = 16;
  for (;;) {
    const std::int64_t start = now_ns();
    const std::uint64_t done = run_items(worker, items);
    const auto took = static_cast<double>(std::max<std::int64_t>(now_ns() - start, 1));
    if (took > kChunkNs / 4) {
      return std::max<std::uint64_t>(static_cast<std::uint64_t>(static_cast<double>(done) * kChunkNs / took), 1);
    }
    items = done * 4;
  }
}

}  // namespace

void ComputingPool::Slot::compute(ComputingJob& job, const SteadyRule& rule, const std::atomic<bool>& stop) {
  Worker& worker = *job.worker;
  if (job.items_per_chunk == 0) {
    job.items_per_chunk = first_guess(worker);
  }
  trace_thread("computation, core " + std::to_string(thread.core()));
  const elbow_trace_type* const chunk = traced_chunk(job.name);
  SteadyDetector detector(rule.window, rule.cov);
  std::int64_t start = now_ns();
  for (std::size_t done = 0; !stop.load(std::memory_order_relaxed); ++done) {
    elbow_trace_begin(chunk, 0, 0, 0);
    const std::uint64_t items = run_items(worker, job.items_per_chunk << static_cast<unsigned>(log.merges()));
    elbow_trace_end(chunk, 0, items, 0);
    const std::int64_t end = now_ns();
    log.push({start, end, items});
    if (done + 1 == kColdChunks) {
      warm.store(end, std::memory_order_release);
    }
    if (done >= kColdChunks && !detector.steady() &&
        detector.add(static_cast<double>(end - start) / static_cast<double>(items))) {
      report.steady = true;
      const std::size_t first = std::min(kColdChunks + detector.first(), log.chunks().size() - 1);
      steady.store(log.chunks()[first].start, std::memory_order_release);
    }
    start = end;
  }
  learn_chunk(job);
  report.valid = worker.validate();
}

// The next phase starts with chunks as long as this one's rate says.
void ComputingPool::Slot::learn_chunk(ComputingJob& job) const {
  const std::vector<Chunk>& chunks = log.chunks();
  if (chunks.size() <= kColdChunks) {
    return;
  }
  const Throughput throughput = inside(chunks, {chunks.front().start, chunks.back().end});
  if (throughput.items > 0) {
    job.items_per_chunk = std::max<std::uint64_t>(static_cast<std::uint64_t>(throughput.rate() * kChunkNs * 1e-9), 1);
  }
}

ComputingPool::ComputingPool(std::function<void(int)> bind) : bind_(std::move(bind)) {}

ComputingPool::~ComputingPool() { stop_.store(true); }

void ComputingPool::use(const std::vector<int>& cores) {
  used_.clear();
  for (const int core : cores) {
    auto it = std::find_if(all_.begin(), all_.end(), [core](const auto& slot) { return slot->thread.core() == core; });
    if (it == all_.end()) {
      all_.push_back(std::make_unique<Slot>(core, bind_));
      it = all_.end() - 1;
    }
    used_.push_back(it->get());
  }
}

void ComputingPool::each(const std::function<void(std::size_t)>& task) {
  begin(task);
  finish();
}

void ComputingPool::begin(const std::function<void(std::size_t)>& task) {
  for (std::size_t i = 0; i < used_.size(); ++i) {
    used_[i]->thread.post([task, i] { task(i); });
  }
}

void ComputingPool::finish() { wait_for_all(used_); }

void ComputingPool::start(const std::vector<ComputingJob*>& jobs, const SteadyRule& rule, PhaseObserver* observer) {
  stop_.store(false);
  running_ = true;
  for (std::size_t i = 0; i < used_.size(); ++i) {
    Slot& slot = *used_[i];
    slot.log.clear();
    slot.warm.store(0);
    slot.steady.store(0);
    slot.report = ComputingReport{};
    slot.report.core = slot.thread.core();
    slot.report.chunks = &slot.log.chunks();
    slot.thread.post([this, &slot, job = jobs[i], rule, observer] {
      if (observer != nullptr) {
        observer->join();
      }
      slot.compute(*job, rule, stop_);
      if (observer != nullptr) {
        observer->leave();
      }
    });
  }
}

std::int64_t ComputingPool::latest(std::atomic<std::int64_t> Slot::*time) const {
  std::int64_t latest = 0;
  for (const Slot* slot : used_) {
    const std::int64_t own = (slot->*time).load(std::memory_order_acquire);
    if (own == 0) {
      return 0;
    }
    latest = std::max(latest, own);
  }
  return latest;
}

std::int64_t ComputingPool::steady_since() const { return latest(&Slot::steady); }
std::int64_t ComputingPool::warm_since() const { return latest(&Slot::warm); }

std::vector<ComputingReport> ComputingPool::stop() {
  stop_.store(true);
  running_ = false;
  wait_for_all(used_);
  std::vector<ComputingReport> reports;
  for (const Slot* slot : used_) {
    reports.push_back(slot->report);
  }
  return reports;
}

}  // namespace elbowroom
