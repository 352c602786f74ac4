// What becomes of a trace, and of the program, where the system refuses threads, memory or room on the disk.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "elbowroom/trace.h"
#include "trace/test_trace.hpp"

using namespace elbowroom::trace;
using namespace elbowroom::trace::tests;

namespace {

// From now on no thread can be made: there is no address space for its stack.
void refuse_threads() {
  pthread_attr_t large;
  pthread_attr_init(&large);
  pthread_attr_setstacksize(&large, std::size_t{1} << 47);
  MUST(pthread_setattr_default_np(&large) == 0);
}

std::size_t files_in(const std::string& folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    count += entry.path().extension() == ".ring" ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("Where the library's own thread cannot be started, signals stay as they were and the trace says why") {
  for (const int policy : {ELBOW_TRACE_DRAIN, ELBOW_TRACE_GROW}) {
    Traced traced;
    traced.settings.policy = policy;
    traced.settings.bytes = 64 * 32;
    traced.settings.text_bytes = 4096;
    CHECK(traced.run_alone([&] {
      refuse_threads();
      MUST(elbow_trace_start(&traced.settings) == 0);
      sigset_t blocked;
      MUST(pthread_sigmask(SIG_SETMASK, nullptr, &blocked) == 0);
      for (int number = 1; number < NSIG; ++number) {
        MUST(sigismember(&blocked, number) != 1);
      }
      const auto* type = type_of("a", "i");
      elbow_trace_region(1);
      for (std::uint64_t i = 0; i < 1000; ++i) {
        elbow_trace_event(type, 0, i, 0);
      }
      elbow_trace_region(0);
      const elbow_trace_summary all = stopped();
      MUST(all.kept >= 62 && all.lost >= 800);
    }) == 0);
    const auto trouble = traced.lines("end").at(0).at("trouble").get<std::string>();
    CHECK(trouble.find("own thread cannot be started") != std::string::npos);
  }
}

TEST_CASE("A region of interest may begin and end after a stop that failed") {
  Traced traced;
  traced.settings.policy = ELBOW_TRACE_GROW;
  CHECK(traced.run([&] {
    elbow_trace_event(type_of("a"), 0, 0, 0);
    // The name that the ring is to have in the directory is taken, by a folder that is not empty.
    const std::string taken = traced.in_directory("rank-00000.thread-00000.ring");
    std::filesystem::create_directories(taken + "/x");
    MUST(elbow_trace_stop(nullptr) == -1);
    elbow_trace_region(1);
    elbow_trace_region(0);
    std::filesystem::remove_all(taken);
    MUST(stopped().kept == 1);
  }) == 0);
}

TEST_CASE("The memory of threads that have ended is given back, and their events are kept") {
  constexpr int kThreads = 1000;
  Traced traced;
  traced.settings.bytes = 2048;
  traced.settings.text_bytes = 4096;
  CHECK(traced.run([&] {
    const auto* type = type_of("a", "i");
    for (int thread = 0; thread < kThreads; ++thread) {
      std::thread([&] {
        elbow_trace_event(type, 0, static_cast<std::uint64_t>(thread), 0);
        elbow_trace_text(type, 1, "text");
      }).join();
    }
    std::size_t in_memory = 0;
    for (const auto& entry : std::filesystem::directory_iterator(traced.folder().path)) {
      in_memory += entry.path().filename() == "trace" ? 0 : files_in(entry.path().string());
    }
    MUST(in_memory == 0);
    const elbow_trace_summary all = stopped();
    MUST(all.threads == kThreads && all.kept == kThreads && all.texts_kept == kThreads && all.refused_threads == 0);
  }) == 0);
  for (const int thread : {0, kThreads - 1}) {
    REQUIRE(traced.ring(thread).events.size() == 1);
    CHECK(traced.ring(thread).events[0].first == static_cast<std::uint64_t>(thread));
  }
}

TEST_CASE("Threads that end while the library's own thread drains and grows rings lose nothing") {
  for (const int policy : {ELBOW_TRACE_DRAIN, ELBOW_TRACE_GROW}) {
    Traced traced;
    traced.settings.policy = policy;
    traced.settings.bytes = 1U << 16;
    traced.settings.text_bytes = 4096;
    CHECK(traced.run([&] {
      const auto* type = type_of("a", "i");
      for (int round = 0; round < 40; ++round) {
        std::vector<std::thread> threads;
        for (int thread = 0; thread < 4; ++thread) {
          threads.emplace_back([type] {
            for (std::uint64_t i = 0; i < 1500; ++i) {
              elbow_trace_event(type, 0, i, 0);
            }
          });
        }
        for (auto& thread : threads) {
          thread.join();
        }
      }
      const elbow_trace_summary all = stopped();
      MUST(all.lost == 0 && all.kept >= 40U * 4 * 1500 && all.refused_threads == 0);
    }) == 0);
  }
}

TEST_CASE("What the destructor of another thread-specific value records is in its thread's ring") {
  Traced traced;
  CHECK(traced.run([] {
    static const elbow_trace_type* type = type_of("a");
    pthread_key_t key;
    MUST(pthread_key_create(&key, [](void*) { elbow_trace_event(type, 2, 0, 0); }) == 0);
    std::thread([&] {
      pthread_setspecific(key, &key);
      elbow_trace_event(type, 1, 0, 0);
    }).join();
    MUST(stopped().kept == 2);
  }) == 0);
}

TEST_CASE("A disk that is full costs events nothing: their types are written when there is room again") {
  Traced traced;
  CHECK(traced.run([&] {
    elbow_trace_event(type_of("first"), 0, 0, 0);
    // No file may grow: what is written fails, as on a full disk.
    signal(SIGXFSZ, SIG_IGN);
    rlimit size{};
    MUST(getrlimit(RLIMIT_FSIZE, &size) == 0);
    const rlimit none{100, size.rlim_max};
    MUST(setrlimit(RLIMIT_FSIZE, &none) == 0);
    const auto* later = elbow_trace_type_new("later", elbow_trace_category("c"), nullptr, nullptr, nullptr);
    MUST(later != nullptr);
    elbow_trace_event(later, 0, 0, 0);
    MUST(elbow_trace_stop(nullptr) == -1);
    MUST(setrlimit(RLIMIT_FSIZE, &size) == 0);
    MUST(stopped().kept == 2);
  }) == 0);
  const auto types = traced.lines("type");
  CHECK(types.back().at("name") == "later");
}

TEST_CASE("Tracing leaves the program's signals, timers and errno alone") {
  for (const int policy : {ELBOW_TRACE_STOP, ELBOW_TRACE_DRAIN}) {
    Traced traced;
    traced.settings.policy = policy;
    CHECK(traced.run_alone([&] {
      sigset_t own;
      sigemptyset(&own);
      sigaddset(&own, SIGUSR2);
      sigprocmask(SIG_SETMASK, &own, nullptr);
      const itimerval profiling{{1000, 0}, {1000, 0}};
      setitimer(ITIMER_PROF, &profiling, nullptr);
      struct sigaction before[NSIG] = {};
      for (int number = 1; number < NSIG; ++number) {
        sigaction(number, nullptr, &before[number]);
      }
      MUST(elbow_trace_start(&traced.settings) == 0);
      const auto* type = type_of("a");
      errno = 1234;
      elbow_trace_event(type, 0, 0, 0);  // makes the ring
      elbow_trace_event(type, 0, 0, 0);
      elbow_trace_region(1);
      MUST(errno == 1234);
      MUST(elbow_trace_stop(nullptr) == 0);
      sigset_t blocked;
      sigprocmask(SIG_SETMASK, nullptr, &blocked);
      for (int number = 1; number < NSIG; ++number) {
        struct sigaction after {};
        sigaction(number, nullptr, &after);
        MUST(sigismember(&blocked, number) == sigismember(&own, number));
        MUST(after.sa_handler == before[number].sa_handler);
      }
      itimerval left{};
      getitimer(ITIMER_PROF, &left);
      MUST(left.it_interval.tv_sec == 1000);
      MUST(left.it_value.tv_sec >= 900);
    }) == 0);
  }
}
