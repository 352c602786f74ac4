// How a trace may end: killed, forked, in a signal handler, racing with threads, without room.
#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "elbowroom/trace.h"
#include "trace/test_trace.hpp"

using namespace elbowroom::trace;
using namespace elbowroom::trace::tests;

namespace {

const elbow_trace_type* in_handler = nullptr;
volatile sig_atomic_t handled = 0;
void record_in_handler(int) {
  elbow_trace_event(in_handler, 9, 0, 0);
  handled = handled + 1;
}

// A file system of so many KiB at `path`, which is this process's alone; ends the process with kSkipped where it may have none.
constexpr int kSkipped = 77;
void mount_small(const std::string& path, int kib) {
  std::filesystem::create_directories(path);
  const bool own = unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
  const std::string size = "size=" + std::to_string(kib) + "k";
  if (!own || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", path.c_str(), "tmpfs", 0, size.c_str()) != 0) {
    _exit(kSkipped);
  }
}

void check_or_skip(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == kSkipped) {
    MESSAGE("skipped: this process may mount no file system of its own");
    return;
  }
  CHECK(status == 0);
}

}  // namespace

TEST_CASE("The rings of a process that was killed are read where they were") {
  Traced traced;
  const int status = traced.run([] {
    const auto* type = type_of("a", "i");
    for (std::uint64_t i = 0; i < 500; ++i) {
      elbow_trace_event(type, 0, i, 0);
    }
    elbow_trace_text(type, 7, "seven");
    kill(getpid(), SIGKILL);
  });
  CHECK(WIFSIGNALED(status));
  const auto memory = traced.lines("trace").at(0).at("memory").get<std::string>();
  const auto bytes = bytes_of(memory + "/thread-00000.ring");
  const RingContents contents = contents_of(bytes);
  CHECK_FALSE(contents.ended);
  CHECK(contents.damage.empty());
  CHECK(contents.events.size() == 500);
  REQUIRE(contents.texts.size() == 1);
  CHECK(contents.texts[0].text == "seven");
}

TEST_CASE("A signal handler may record in the middle of an event: none is lost, none is torn") {
  Traced traced;
  traced.settings.bytes = 64U << 20;
  CHECK(traced.run([] {
    in_handler = type_of("a", "i");
    elbow_trace_thread("main");
    signal(SIGALRM, record_in_handler);
    const itimerval often{{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &often, nullptr);
    std::uint64_t count = 0;
    while (handled < 50 && count < 2'000'000) {
      elbow_trace_event(in_handler, 1, count++, 0);
    }
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    MUST(stopped().kept == count + static_cast<std::uint64_t>(handled));
  }) == 0);
  std::uint64_t next = 0;
  for (const auto& event : traced.ring().events) {
    if (event.small == 1) {
      CHECK(event.first == next);
      ++next;
    }
  }
}

TEST_CASE("A child that was made by a system call leaves its parent's trace alone when it exits") {
  Traced traced;
  CHECK(traced.run([] {
    elbow_trace_event(type_of("a", "i"), 0, 1, 0);
    const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    if (child == 0) {
      std::exit(0);
    }
    waitpid(child, nullptr, 0);
    elbow_trace_event(type_of("a", "i"), 0, 2, 0);
    MUST(stopped().kept == 2);
  }) == 0);
  CHECK(traced.lines("end").size() == 1);
  CHECK(traced.ring().events.size() == 2);
}

TEST_CASE("NULL and structures without a size are errors, not crashes") {
  Traced traced;
  CHECK(traced.run([] {
    elbow_trace_summary unsized{};
    MUST(elbow_trace_stop(&unsized) == -1 && errno == EINVAL);
    MUST(elbow_trace_describe(&unsized, nullptr, 0) == -1 && errno == EINVAL);
    MUST(elbow_trace_describe(nullptr, nullptr, 0) == -1 && errno == EINVAL);
    elbow_trace_record(nullptr, ELBOW_TRACE_EVENT, 0, 0, 0);
    elbow_trace_event(type_of("a", "i"), 0, 1, 0);  // the refused stop has stopped nothing
    MUST(stopped().kept == 1);
    MUST(elbow_trace_start(nullptr) == -1);
    MUST(std::string(elbow_trace_version()) == ELBOWROOM_VERSION);
  }) == 0);
}

TEST_CASE("A child of fork records nothing into its parent's rings, and cannot be traced itself") {
  Traced traced;
  CHECK(traced.run([&] {
    const auto* type = type_of("a");
    elbow_trace_event(type, 1, 0, 0);
    const pid_t child = fork();
    if (child == 0) {
      elbow_trace_event(type, 2, 0, 0);
      MUST(elbow_trace_start(&traced.settings) == -1 && errno == EBUSY);
      MUST(std::string(elbow_trace_error()).find("a child of fork with its parent") != std::string::npos);
      MUST(elbow_trace_stop(nullptr) == -1);
      std::exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    MUST(status == 0);
    MUST(stopped().recorded == 1);
  }) == 0);
}

TEST_CASE("Whatever threads do while the trace is stopped, recorded is kept and lost to the event, as in the files") {
  for (const int policy : {ELBOW_TRACE_STOP, ELBOW_TRACE_OVERWRITE, ELBOW_TRACE_DRAIN, ELBOW_TRACE_GROW}) {
    for (const std::size_t bytes : {std::size_t{64} * 32, std::size_t{1} << 20}) {
      Traced traced;
      traced.settings.policy = policy;
      traced.settings.bytes = bytes;
      CHECK(traced.run([] {
        const auto* type = type_of("a", "i");
        std::atomic<bool> stop = false;
        std::atomic<int> begun = 0;
        std::vector<std::thread> threads;
        for (int thread = 0; thread < 2; ++thread) {
          threads.emplace_back([&, type] {
            for (std::uint64_t i = 0; !stop; ++i) {
              elbow_trace_event(type, 0, i, 0);
              begun += i == 1000 ? 1 : 0;
            }
          });
        }
        while (begun < 2) {
          std::this_thread::yield();
        }
        stopped();
        stop = true;
        for (auto& thread : threads) {
          thread.join();
        }
      }) == 0);
      const auto end = traced.lines("end").at(0);
      std::uint64_t recorded = 0;
      std::uint64_t in_files = 0;
      for (int thread = 0; thread < end.at("threads").get<int>(); ++thread) {
        const RingContents contents = traced.ring(thread);
        CHECK(contents.damage.empty());
        CHECK(contents.unfinished == 0);
        recorded += contents.recorded;
        in_files += kept(contents).size();
        const std::uint64_t known = kept(contents).size() + marked(contents);
        CHECK(contents.recorded == known);
      }
      CHECK(recorded == end.at("recorded").get<std::uint64_t>());
      CHECK(in_files == end.at("kept").get<std::uint64_t>());
    }
  }
}

TEST_CASE("A disk that is full at the end loses nothing: the events stay in memory, and the stop may be repeated") {
  for (const int policy : {ELBOW_TRACE_STOP, ELBOW_TRACE_DRAIN}) {
    Traced traced;
    check_or_skip(traced.run_alone([&] {
      const std::string disk = traced.folder() / "disk";
      mount_small(disk, 256);
      const std::string directory = disk + "/trace";
      traced.settings.directory = directory.c_str();
      traced.settings.policy = policy;
      MUST(elbow_trace_start(&traced.settings) == 0);
      const auto* type = type_of("a", "i");
      for (std::uint64_t i = 0; i < 10'000; ++i) {
        elbow_trace_event(type, 0, i, 0);
      }
      MUST(elbow_trace_stop(nullptr) == -1 && errno == ENOSPC);
      const std::string error = elbow_trace_error();
      MUST(error.find("No space left on device") != std::string::npos);
      MUST(error.find("the events stay in " + traced.folder().path.string()) != std::string::npos);
      MUST(mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT, "size=4m") == 0);
      MUST(stopped().kept == 10'000);
      RingContents contents;
      MUST(read_ring(bytes_of(directory + "/rank-00000.thread-00000.ring"), contents));
      MUST(contents.events.size() == 10'000 && contents.damage.empty());
    }));
  }
}

TEST_CASE("A thread whose ring finds no memory is not recorded, and the summary says so") {
  Traced traced;
  check_or_skip(traced.run_alone([&] {
    const std::string memory = traced.folder() / "small";
    mount_small(memory, 10 * 1024);
    traced.settings.memory = memory.c_str();
    MUST(elbow_trace_start(&traced.settings) == 0);
    const auto* type = type_of("a", "i");
    elbow_trace_event(type, 0, 1, 0);
    std::thread([type] {
      MUST(elbow_trace_thread("late") == -1 && errno == ENOSPC);
      elbow_trace_event(type, 0, 2, 0);
      elbow_trace_event(type, 0, 3, 0);
    }).join();
    const elbow_trace_summary summary = stopped();
    MUST(summary.kept == 1 && summary.lost == 0 && summary.threads == 1 && summary.refused_threads == 1);
    char text[1024];
    MUST(elbow_trace_describe(&summary, text, sizeof text) > 0);
    MUST(std::string(text).find("threads got no ring and were not recorded") != std::string::npos);
  }));
  if (!traced.lines("end").empty()) {
    CHECK(traced.lines("end").at(0).at("refusal").get<std::string>().find("--buffer") != std::string::npos);
  }
}

TEST_CASE("What cannot be is refused with a sentence, and leaves nothing in memory") {
  Traced traced;
  CHECK(traced.run_alone([&] {
    MUST(elbow_trace_stop(nullptr) == -1 && errno == EINVAL);
    elbow_trace_settings settings = traced.settings;
    const std::string nowhere = traced.folder() / "no/such";
    settings.memory = nowhere.c_str();
    MUST(elbow_trace_start(&settings) == -1 && errno == ENOENT);
    MUST(std::string(elbow_trace_error()).find("cannot be written") != std::string::npos);
    settings = traced.settings;
    settings.rank = 2;
    MUST(elbow_trace_start(&settings) == -1 && errno == EINVAL);
    settings = traced.settings;
    settings.bytes = 100;
    MUST(elbow_trace_start(&settings) == -1);
    settings = traced.settings;
    settings.policy = 5;
    MUST(elbow_trace_start(&settings) == -1 && errno == EINVAL);
    settings.policy = ELBOW_TRACE_DRAIN;
    for (const char* core : {"1023", "two", "-1", ""}) {
      settings.core = core;
      MUST(elbow_trace_start(&settings) == -1 && errno == EINVAL);
      MUST(std::string(elbow_trace_error()).find("core '" + std::string(core) + "'") == 0);
    }
    setenv("ELBOW_CLOCK", "sundial", 1);
    MUST(elbow_trace_start(&traced.settings) == -1 && errno == EINVAL);
    unsetenv("ELBOW_CLOCK");
    for (const auto& entry : std::filesystem::directory_iterator(traced.folder().path)) {
      MUST(entry.path().filename() == "trace");
    }
    MUST(elbow_trace_start(&traced.settings) == 0);
    MUST(elbow_trace_start(&traced.settings) == -1 && errno == EBUSY);
    MUST(elbow_trace_start_from_environment() == 0);
    MUST(elbow_trace_type_new("x", 12, nullptr, nullptr, nullptr) == nullptr);
    MUST(elbow_trace_category("\xff") == -1 && errno == EINVAL);
    for (int i = 0; i < 63; ++i) {
      MUST(elbow_trace_category(std::to_string(i).c_str()) == i);
    }
    MUST(elbow_trace_category("one more") == -1 && errno == ENOSPC);
    MUST(elbow_trace_thread("a") == 0 && elbow_trace_thread("b") == -1 && errno == EEXIST);
  }) == 0);
}
