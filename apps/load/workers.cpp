#include "workers.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <utility>

#include "kernels/kernel.hpp"
#include "pace.hpp"

namespace elbowroom::load {
namespace {

constexpr const char* kKernel = "triad";  // reads and writes, through all caches, as most programs
constexpr std::uint64_t kItems = 1024;    // of a chunk: 32 KiB of traffic, some us
constexpr std::int64_t kSleepNs = 100'000;
constexpr std::int64_t kWakeNs = 60'000;  // earlier than due: the kernel wakes late
constexpr std::int64_t kCheckNs = 20'000'000;
constexpr int kLeastNice = 19;

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void sleep_until(std::int64_t ns) {
  const timespec time{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

// The second number of schedstat: ns in which the thread could have run and did not; -1: unknown.
std::int64_t waited_ns(long thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/schedstat");
  std::int64_t ran = 0;
  std::int64_t waited = 0;
  return file >> ran >> waited ? waited : -1;
}

// For this thread; returns what was accepted.
std::string lower(Priority wanted) {
  const sched_param none{};
  if (wanted == Priority::idle && sched_setscheduler(0, SCHED_IDLE, &none) == 0) return "idle";
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  if (wanted != Priority::normal && setpriority(PRIO_PROCESS, thread, kLeastNice) == 0) return "nice";
  return "normal";
}

}  // namespace

struct Workers::Thread {
  explicit Thread(int core_number) : core(core_number) {}
  int core;
  Arena arena;
  std::unique_ptr<Worker> worker;
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<long> id{0};
  std::thread thread;
};

Workers::Workers(const std::vector<int>& cores, std::uint64_t most, double seconds, Priority priority)
    : end_ns_(monotonic_ns() + static_cast<std::int64_t>(seconds * 1e9)), priority_(priority) {
  const Machine& machine = Machine::here();
  for (const int number : cores) {
    const CoreInfo* const core = machine.core(number);
    if (core == nullptr || !core->allowed) {
      throw std::runtime_error("core " + std::to_string(number) + " does not exist, or is outside the cpuset");
    }
    auto thread = std::make_unique<Thread>(number);
    thread->arena = Arena(most, std::max(core->node, 0));
    threads_.push_back(std::move(thread));
  }
  for (const auto& thread : threads_) {
    thread->thread = std::thread([this, &one = *thread] { loop(one); });
  }
  set({});
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  for (const auto& thread : threads_) thread->thread.join();
}

void Workers::set(Setting setting) {
  std::unique_lock lock(mutex_);
  setting_ = setting;
  following_ = 0;
  wanted_ = ++generation_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return following_ == threads_.size() || error_; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

Done Workers::done() const {
  Done done{monotonic_ns(), 0, 0};
  for (const auto& thread : threads_) {
    done.bytes += thread->bytes;
    const std::int64_t waited = waited_ns(thread->id);
    done.waited_ns = waited < 0 || done.waited_ns < 0 ? -1 : done.waited_ns + waited;
  }
  return done;
}

bool Workers::over() const { return monotonic_ns() >= end_ns_; }

std::string Workers::priority() const {
  const std::lock_guard lock(mutex_);
  return accepted_;
}

void Workers::loop(Thread& thread) {
  thread.id = syscall(SYS_gettid);
  try {
    Machine::here().bind_this_thread(thread.core);
    prctl(PR_SET_TIMERSLACK, 1UL);
    const std::string accepted = lower(priority_);
    const std::lock_guard lock(mutex_);
    accepted_ = accepted;
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    changed_.notify_all();
    return;
  }
  std::uint64_t known = 0;
  while (!quit_ && !over()) {
    std::unique_lock lock(mutex_);
    const bool new_one =
        changed_.wait_for(lock, std::chrono::nanoseconds(kCheckNs), [&] { return quit_ || generation_ != known; });
    if (!new_one || quit_) continue;
    known = generation_;
    const Setting setting = setting_;
    lock.unlock();
    std::exception_ptr error;
    try {
      if (setting.rate > 0) {
        thread.worker = make_worker(kKernel, thread.arena.data(), setting.footprint, 1);
        thread.worker->first_touch();
        thread.worker->run(thread.worker->items_per_sweep());
      }
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) error_ = error;
    ++following_;
    lock.unlock();
    changed_.notify_all();
    if (!error && setting.rate > 0) follow(thread, setting);
  }
  // Who waits for this thread waits no longer.
  const std::lock_guard lock(mutex_);
  ++following_;
  changed_.notify_all();
}

void Workers::follow(Thread& thread, Setting setting) {
  const double traffic = find_kernel(kKernel)->bus_bytes;
  const std::uint64_t mine = wanted_;
  Pace pace(setting.rate, monotonic_ns());
  std::int64_t now = monotonic_ns();
  while (wanted_.load(std::memory_order_relaxed) == mine && !quit_.load(std::memory_order_relaxed) && now < end_ns_) {
    const std::int64_t due = std::min(pace.due_ns(now), end_ns_);
    if (due - now > kSleepNs) sleep_until(std::min(due - kWakeNs, now + kCheckNs));
    now = monotonic_ns();
    if (now < due) continue;
    const auto bytes = static_cast<std::uint64_t>(static_cast<double>(thread.worker->run(kItems)) * traffic);
    pace.moved(bytes);
    thread.bytes.fetch_add(bytes, std::memory_order_relaxed);
    now = monotonic_ns();
  }
}

}  // namespace elbowroom::load
