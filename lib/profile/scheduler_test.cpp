// Threads: their cores, and samples of the time that they ran and waited.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "profile/test_profile.hpp"

namespace elbowroom::profile {
namespace {

using namespace tests;

TEST_CASE("threads are there with their cores and the time that they ran, also when they have ended") {
  const Folder folder;
  const std::string file = folder.file();
  elbow_profile_settings settings = settings_for(file);
  elbow_profile* const profile = elbow_profile_new(&settings);
  REQUIRE(profile != nullptr);
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  int core = 0;
  while (!CPU_ISSET(core, &before)) {
    ++core;
  }
  std::thread pinned([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    elbow_profile_look_at_threads(profile);
  });
  pinned.join();
  elbow_profile_look_at_threads(profile);
  const Contents contents(file);
  const Header header = contents.header();
  REQUIRE(header.threads >= 2);
  std::size_t alone = 0;
  for (std::uint32_t i = 0; i < header.threads; ++i) {
    const auto place = contents.at<ThreadPlace>(header.threads_offset, i);
    CHECK(place.cpus >= 1);
    CHECK(place.cpu >= static_cast<std::int32_t>(place.first));
    CHECK(place.cpu <= static_cast<std::int32_t>(place.last));
    alone += place.thread != getpid() && place.cpus == 1 && place.first == static_cast<std::uint32_t>(core) ? 1 : 0;
    if (place.thread == getpid()) {
      CHECK(place.cpus == static_cast<std::uint32_t>(CPU_COUNT(&before)));
      CHECK(place.first == static_cast<std::uint32_t>(core));
    }
  }
  CHECK(alone == 1);
  elbow_profile_free(profile);
}

// What the records between two samples say.
struct Interval {
  elbow_profile_record ran;
  std::uint64_t waited_ns;  // 0 also where the kernel does not say it
};

std::vector<Interval> intervals_of(const Contents& contents) {
  std::vector<Interval> intervals;
  for (std::uint64_t i = 0; i < contents.header().written; ++i) {
    const elbow_profile_record record = contents.record(i);
    if (record.kind == ELBOW_PROFILE_RAN) {
      intervals.push_back({record, 0});
    } else {
      REQUIRE(record.kind == ELBOW_PROFILE_WAITED);
      CHECK(record.end_ns == intervals.back().ran.end_ns);
      intervals.back().waited_ns = record.bytes;
    }
  }
  return intervals;
}

std::uint64_t cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

TEST_CASE("samples of a thread say how long it ran and waited, and the rest is sleep") {
  const Folder folder;
  const std::string file = folder.file();
  const elbow_profile_settings settings = settings_for(file);
  elbow_profile* const profile = elbow_profile_new(&settings);
  constexpr std::uint64_t kEach = 5'000'000;  // ns, of CPU time, then of sleep
  std::uint64_t begins[3];
  std::uint64_t ends[3];
  const auto sample = [&](int which) {
    begins[which] = elbow_profile_now();
    REQUIRE(elbow_profile_sample(profile) == 0);
    ends[which] = elbow_profile_now();
  };
  sample(0);
  for (const std::uint64_t from = cpu_ns(); cpu_ns() - from < kEach;) {
  }
  sample(1);
  std::this_thread::sleep_for(std::chrono::nanoseconds(kEach));
  sample(2);
  const Contents contents(file);
  const std::vector<Interval> intervals = intervals_of(contents);
  REQUIRE(intervals.size() == 2);
  CHECK(intervals[0].ran.peer >= 0);
  CHECK(intervals[1].ran.begin_ns == intervals[0].ran.end_ns);
  CHECK(intervals[0].ran.bytes >= kEach);
  // The thread may be preempted in the middle of a sample, so only the time from the begin of one to the end of the next is
  // a bound. Interrupts and hypervisors take time that nobody ran or waited: there is no bound from below.
  for (const std::size_t i : {0, 1}) {
    const std::uint64_t longest = ends[i + 1] - begins[i];
    const std::uint64_t slept = i == 1 ? kEach : 0;
    const std::uint64_t slack = longest / 100 + 100'000;  // between the kernel's clocks
    CHECK(intervals[i].ran.bytes + intervals[i].waited_ns <= longest - slept + slack);
  }
  CHECK(contents.header().calls == 0);
  const auto place = contents.at<ThreadPlace>(contents.header().threads_offset, intervals[0].ran.call);
  CHECK(place.thread == getpid());
  elbow_profile_free(profile);
}

TEST_CASE(
    "a thread that loses its core while it takes a sample waited in that sample or the next, and not more than it "
    "lasts") {
  const Folder folder;
  const std::string file = folder.file();
  const elbow_profile_settings settings = settings_for(file);
  elbow_profile* const profile = elbow_profile_new(&settings);
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) {
    }
  });
  for (int i = 0; i < 40; ++i) {
    REQUIRE(elbow_profile_sample(profile) == 0);
    for (const std::uint64_t begin = elbow_profile_now(); elbow_profile_now() - begin < 5'000'000;) {
    }
  }
  done = true;
  other.join();
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
  const Contents contents(file);
  for (const Interval& interval : intervals_of(contents)) {
    const std::uint64_t lasted = interval.ran.end_ns - interval.ran.begin_ns;
    CHECK(interval.ran.bytes + interval.waited_ns <= lasted + lasted / 100 + 300'000);
  }
  elbow_profile_free(profile);
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST_CASE("threads that have ended leave no descriptor open") {
  const Folder folder;
  const std::string file = folder.file();
  elbow_profile_settings settings = settings_for(file);
  settings.threads = 1;
  elbow_profile* const profile = elbow_profile_new(&settings);
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 100; ++i) {
    std::thread([profile] {
      elbow_profile_sample(profile);
      elbow_profile_sample(profile);
    }).join();
  }
  CHECK(open_descriptors() == before);
  const Contents contents(file);
  std::uint64_t known = 0;
  for (std::uint64_t i = 0; i < contents.header().written; ++i) {
    const elbow_profile_record record = contents.record(i);
    known += record.kind == ELBOW_PROFILE_RAN && (record.flags & ELBOW_PROFILE_UNFINISHED) == 0 ? 1 : 0;
  }
  CHECK((known == 100 || !fs::exists("/proc/self/schedstat")));
  elbow_profile_free(profile);
}

TEST_CASE("a program that closes the descriptor of samples keeps what it opens by that number") {
  const Folder folder;
  const std::string file = folder.file();
  const elbow_profile_settings settings = settings_for(file);
  elbow_profile* const profile = elbow_profile_new(&settings);
  const int own = dup(STDOUT_FILENO);
  std::thread([&] {
    elbow_profile_sample(profile);
    for (int number = 3; number < 1024; ++number) {
      if (number != own) {
        close(number);
      }
    }
    for (int number = 3; number < 1024; ++number) {
      dup2(own, number);
    }
    elbow_profile_sample(profile);
  }).join();
  int open = 0;
  for (int number = 3; number < 1024; ++number) {
    open += fcntl(number, F_GETFD) >= 0 ? 1 : 0;
    close(number);
  }
  CHECK(open == 1024 - 3);
  elbow_profile_free(profile);
}

}  // namespace
}  // namespace elbowroom::profile
