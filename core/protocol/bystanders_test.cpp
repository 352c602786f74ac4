#include "protocol/bystanders.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <stdexcept>

#include "protocol/touched_array.hpp"

using namespace elbowroom;

namespace {

int first_node() { return Machine::here().nodes().front().number; }
void on_any_core(int) {}

}  // namespace

TEST_CASE("what is written is there, and what is read had been written") {
  for (const bool writes : {true, false}) {
    TouchedArray array(1001, first_node(), writes);
    CHECK(array.holds());
    array.touch(1001);
    array.touch(13);
    array.touch(0);
    CHECK(array.holds());
  }
}

TEST_CASE("an array that somebody else changed does not hold") {
  TouchedArray read(1000, first_node(), false);
  std::memset(read.data(), 7, 1);
  read.touch(1000);
  CHECK_FALSE(read.holds());
  TouchedArray written(1000, first_node(), true);
  written.touch(1000);
  std::memset(static_cast<char*>(written.data()) + 999, 7, 1);
  CHECK_FALSE(written.holds());
}

TEST_CASE("bystanders, threads or processes, go over their arrays until they are told to rest") {
  for (const int kind : {0, 1, 2, 3}) {
    const bool writes = kind % 2 == 0;
    PhaseObserver observer({}, {}, -1);
    Bystanders bystanders(on_any_core);
    bystanders.use({0, 1}, 4096, first_node(), writes, kind > 1);
    observer.start();
    bystanders.start(observer);
    for (const std::size_t bytes : {4096U, 0U, 400U}) {
      bystanders.sweep(bytes);
      CHECK(bystanders.rest());
    }
    CHECK(bystanders.stop());
    observer.stop();
    CHECK(bystanders.pages().size() == 2);
  }
}

TEST_CASE("bystanders that rested before they were told to are found out") {
  PhaseObserver observer({}, {}, -1);
  Bystanders bystanders(on_any_core);
  bystanders.use({0}, 4096, first_node(), true);
  bystanders.start(observer);
  bystanders.sweep(4096);
  CHECK(bystanders.rest());
  CHECK_FALSE(bystanders.rest());
  CHECK(bystanders.stop());
}

TEST_CASE("bystanders are stopped while they go over their arrays, and start anew") {
  PhaseObserver observer({}, {}, -1);
  Bystanders bystanders(on_any_core);
  for (int time = 0; time < 2; ++time) {
    bystanders.use({0, 1}, 1 << 16, first_node(), true);
    bystanders.start(observer);
    bystanders.sweep(1 << 16);
    CHECK(bystanders.stop());
  }
  CHECK(bystanders.bytes_on(first_node()) == 2 << 16);
  bystanders.use({}, 0, first_node(), true);
  CHECK(bystanders.bytes_on(first_node()) == 0);
  CHECK(bystanders.pages().empty());
}

TEST_CASE("a process that cannot be bound says so, and leaves none behind") {
  Bystanders bystanders([](int) { throw std::runtime_error("no such core"); });
  CHECK_THROWS_WITH(bystanders.use({7}, 64, first_node(), true, true), "no such core");
  bystanders.use({}, 0, first_node(), true);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("a process that is killed is noticed") {
  PhaseObserver observer({}, {}, -1);
  pid_t child = -1;
  Bystanders bystanders(on_any_core);
  bystanders.use({0}, 4096, first_node(), true, true);
  bystanders.start(observer);
  std::ifstream("/proc/self/task/" + std::to_string(gettid()) + "/children") >> child;
  if (child > 0) {
    kill(child, SIGKILL);
    CHECK_THROWS_WITH(bystanders.sweep(4096), "a bystander's process has ended");
  }
  CHECK_FALSE(bystanders.stop());
}

TEST_CASE("a bystander that cannot be bound says so") {
  Bystanders bystanders([](int) { throw std::runtime_error("no such core"); });
  CHECK_THROWS_WITH(bystanders.use({7}, 64, first_node(), true), "no such core");
}
