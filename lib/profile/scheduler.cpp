#include "profile/scheduler.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>

#include "profile/recording.hpp"
#include "profile/ticks.hpp"

namespace elbowroom::profile {

constinit thread_local Sampling sampling;

namespace {

constexpr std::uint64_t kShortest = 1'000'000;  // ns between samples
constexpr std::uint64_t kShare = 1000;          // of the time: at most one part of so many
constexpr std::uint64_t kShareAtMarks = 200;
constexpr int kMostFiles = 64;  // open ones of this process: it may have use for its descriptors
constexpr int kMostOpened = 8;  // times: a program may close descriptors that it does not know
constexpr int kLowest = 700;    // descriptor, where the limit allows it: programs expect their own to be small
constexpr std::uint64_t kAtOnce = 100'000;  // ns: a reading that takes longer was interrupted, maybe for a time slice
constexpr int kReadings = 4;                // at most, to get one that was not

std::atomic<int> files{0};

// System calls without points of cancellation: a thread that is cancelled in MPI is not cancelled here.
int open_schedstat() {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/task/%d/schedstat", static_cast<int>(syscall(SYS_gettid)));
  const int low = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path.data(), O_RDONLY | O_CLOEXEC));
  if (low < 0) {
    return -1;
  }
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const int high = limit.rlim_cur > kLowest ? fcntl(low, F_DUPFD_CLOEXEC, kLowest) : -1;
  if (high < 0) {
    return low;
  }
  syscall(SYS_close, low);
  return high;
}

// Whether a descriptor is still the file that it was opened as: a schedstat.
std::optional<std::uint64_t> waited_by(int file) {
  std::array<char, 96> text{};
  const long size = syscall(SYS_pread64, file, text.data(), text.size(), 0L);
  if (size <= 0 || size == static_cast<long>(text.size())) {
    return std::nullopt;
  }
  std::array<std::uint64_t, 3> numbers{};
  const char* at = text.data();
  const char* const end = at + size;
  for (std::uint64_t& number : numbers) {
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || next == end || (*next != ' ' && *next != '\n')) {
      return std::nullopt;
    }
    at = next + 1;
  }
  return at == end ? std::optional(numbers[1]) : std::nullopt;
}

// The end of a thread. What the program has opened by this number meanwhile is its own.
void close_file(void*) {
  if (sampling.file >= 0) {
    if (waited_by(sampling.file)) {
      syscall(SYS_close, sampling.file);
    }
    sampling.file = -1;
    files.fetch_sub(1, std::memory_order_relaxed);
  }
}

void close_at_end() {
  static const std::optional<pthread_key_t> key = [] {
    pthread_key_t made{};
    return pthread_key_create(&made, close_file) == 0 ? std::optional(made) : std::nullopt;
  }();
  if (key) {
    pthread_setspecific(*key, &sampling);
  }
}

// The time that this thread has waited in the run queue; not known where the kernel does not count it.
std::optional<std::uint64_t> waited() {
  std::optional<std::uint64_t> ns = sampling.file >= 0 ? waited_by(sampling.file) : std::nullopt;
  if (ns || sampling.opened == kMostOpened) {
    return ns;
  }
  if (sampling.file < 0) {
    if (files.fetch_add(1, std::memory_order_relaxed) >= kMostFiles) {
      files.fetch_sub(1, std::memory_order_relaxed);
      sampling.opened = kMostOpened;
      return std::nullopt;
    }
    close_at_end();
  }
  sampling.opened += 1;
  sampling.file = open_schedstat();
  if (sampling.file < 0) {
    files.fetch_sub(1, std::memory_order_relaxed);
    sampling.opened = kMostOpened;
    return std::nullopt;
  }
  return waited_by(sampling.file);
}

std::uint64_t cpu_now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

// What the clocks of a thread say at one time.
struct Reading {
  std::uint64_t now = 0;
  std::uint64_t cpu_ns = 0;
  std::optional<std::uint64_t> waited_ns;
};

// A thread that loses its core between two clocks would have waited in another sample than that in which it did.
Reading read_clocks() {
  Reading reading;
  for (int i = 0; i < kReadings; ++i) {
    reading = {now(), cpu_now(), waited()};
    if (now() - reading.now < kAtOnce) {
      break;
    }
  }
  return reading;
}

int add_sample(elbow_profile& profile, const Reading& reading) {
  const auto& [end, cpu_ns, waits] = reading;
  const bool known = waits.has_value() && sampling.waits_known && *waits >= sampling.waited_ns;
  elbow_profile_record record{};
  record.begin_ns = std::min(sampling.last, end);
  record.end_ns = end;
  record.bytes = cpu_ns > sampling.cpu_ns ? cpu_ns - sampling.cpu_ns : 0;
  record.peer = sched_getcpu();
  record.call = sampling.thread;
  record.kind = ELBOW_PROFILE_RAN;
  record.flags = known ? 0 : ELBOW_PROFILE_UNFINISHED;
  const int result = keep(profile, record);
  if (!known || *waits == sampling.waited_ns) {
    return result;
  }
  record.kind = ELBOW_PROFILE_WAITED;
  record.bytes = *waits - sampling.waited_ns;
  record.peer = -1;
  return keep(profile, record) != 0 ? -1 : result;
}

}  // namespace

int sample(elbow_profile& profile) {
  const Reading reading = read_clocks();
  int result = 0;
  if (sampling.profile != profile.number) {
    sampling.profile = profile.number;
    const std::size_t place = place_of_thread(profile, static_cast<std::int32_t>(syscall(SYS_gettid)));
    sampling.thread = static_cast<std::uint16_t>(place);
  } else {
    result = add_sample(profile, reading);
  }
  sampling.last = reading.now;
  sampling.cpu_ns = reading.cpu_ns;
  sampling.waited_ns = reading.waited_ns.value_or(0);
  sampling.waits_known = reading.waited_ns.has_value();
  // By CPU time, as a thread may wait for its core meanwhile: that is not what samples cost.
  const std::uint64_t end = profile::now();
  const std::uint64_t took = std::max<std::uint64_t>(cpu_now() - reading.cpu_ns, 1);
  sampling.cheapest = std::min(sampling.cheapest, took);
  const std::uint64_t cost = std::min(took, 2 * sampling.cheapest);
  sampling.due = end + std::max(kShortest, kShare * cost);
  sampling.mark = end + kShareAtMarks * cost;
  return result;
}

}  // namespace elbowroom::profile
