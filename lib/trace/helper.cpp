#include "trace/helper.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <string>
#include <system_error>

#include "no_signals.hpp"

namespace elbowroom::trace {
namespace {

// How often it looks: a thread that does nothing but record fills 4 MiB in 1.3 ms.
constexpr std::chrono::microseconds kShortest{100};
constexpr std::chrono::microseconds kLongest{4000};

cpu_set_t set_of(const char* core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  unsigned number = CPU_SETSIZE;
  const char* const end = core + std::strlen(core);
  const auto [stopped, failed] = std::from_chars(core, end, number);
  if (failed != std::errc() || stopped != end || number >= CPU_SETSIZE) {
    throw Refusal(EINVAL, std::string("core '") + core + "': is not a number of a core; give one, 0 to " +
                              std::to_string(CPU_SETSIZE - 1));
  }
  CPU_SET(number, &set);
  return set;
}

}  // namespace

NoThread::NoThread(int error)
    : Refusal(error, std::string("the library's own thread cannot be started (") + std::strerror(error) +
                         "): events beyond a ring's size are lost; allow the process more threads (ulimit -u), or give "
                         "more bytes") {}

Helper::Helper(std::function<bool()> work, const char* core) : work_(std::move(work)) {
  cpu_set_t set;
  if (core != nullptr) {
    set = set_of(core);
  }
  try {
    const NoSignals blocked;  // signals are for the program's own threads
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw NoThread(error.code().value());
  }
  if (core != nullptr) {
    if (const int code = pthread_setaffinity_np(thread_.native_handle(), sizeof set, &set); code != 0) {
      stop();
      throw Refusal(code, std::string("core '") + core + "': the library's own thread cannot run there (" +
                              std::strerror(code) + "); name a core that this process may use");
    }
  }
}

Helper::~Helper() { stop(); }

void Helper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_one();
  thread_.join();
}

void Helper::hold(bool held) {
  {
    const std::lock_guard lock(mutex_);
    held_ = held;
  }
  stop_.notify_one();
}

void Helper::run() {
  auto pause = kShortest;
  for (std::unique_lock lock(mutex_); !stopping_;) {
    lock.unlock();
    pause = work_() ? kShortest : std::min(2 * pause, kLongest);
    lock.lock();
    stop_.wait_for(lock, pause, [this] { return stopping_; });
    stop_.wait(lock, [this] { return stopping_ || !held_; });
  }
}

}  // namespace elbowroom::trace
