// A flow whose guard lets memory-bound tasks wait while messages move: a board as a guarded job has it, in one process.
#include "restraint.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "elbowroom/guard.h"
#include "graph.hpp"

using namespace elbowroom::taskflow;

namespace {

constexpr std::uint32_t kLever = 2;

// The job has another rank, whose messages are in flight or not.
class Guarded {
 public:
  Guarded() : path_("/dev/shm/elbow-guard-test-" + std::to_string(getpid())) {
    setenv("ELBOW_GUARD", path_.c_str(), 1);
    setenv("ELBOW_GUARD_MEMORY_BOUND", "guard_test_copy", 1);
    setenv("ELBOW_GUARD_COMPUTE_BOUND", "guard_test_compute", 1);
    board = elbow_guard_make(path_.c_str(), 4);
    rank_ = elbow_guard_join(board, 1, 0);
  }
  ~Guarded() {
    elbow_guard_leave(rank_);
    elbow_guard_close(board);
    unlink(path_.c_str());
    for (const char* const name : {"ELBOW_GUARD", "ELBOW_GUARD_MEMORY_BOUND", "ELBOW_GUARD_COMPUTE_BOUND"})
      unsetenv(name);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  void begin() { elbow_guard_begin(rank_, ELBOW_GUARD_OUT, 64 << 20); }
  void end() { elbow_guard_end(rank_, ELBOW_GUARD_OUT, 64 << 20); }

  elbow_guard* board = nullptr;

 private:
  std::string path_;
  elbow_guard_rank* rank_ = nullptr;
};

std::vector<char>* order = nullptr;

}  // namespace

extern "C" {
__attribute__((visibility("default"))) void guard_test_copy(void* const*, const void*) { order->push_back('m'); }
__attribute__((visibility("default"))) void guard_test_compute(void* const*, const void*) { order->push_back('c'); }
}

namespace {

Task task_of(Kernel kernel) {
  Task task;
  task.kernel = kernel;
  return task;
}

}  // namespace

TEST_CASE("Without a guard no task waits, and each runs") {
  std::vector<char> ran;
  order = &ran;
  Restraint restraint;
  Task task = task_of(guard_test_copy);
  restraint.look();
  CHECK_FALSE(restraint.keep(task));
  CHECK(restraint.release(true) == nullptr);
  restraint.run(task, task.buffers.data());
  CHECK(ran == std::vector<char>{'m'});
}

TEST_CASE("Memory-bound tasks wait while large messages move, and no longer") {
  Guarded guarded;
  Restraint restraint;
  Task copy = task_of(guard_test_copy);
  Task compute = task_of(guard_test_compute);
  for (const std::uint64_t setting : {0, 1}) {
    elbow_guard_set(guarded.board, kLever, setting);
    restraint.look();
    guarded.begin();
    CHECK_FALSE(restraint.keep(copy));
    guarded.end();
  }
  elbow_guard_set(guarded.board, kLever, 3);
  restraint.look();
  CHECK((elbow_guard_setting(guarded.board, ELBOW_GUARD_SETTINGS - 1 - kLever) & 0xFF) == 3);
  CHECK_FALSE(restraint.keep(copy));
  guarded.begin();
  CHECK_FALSE(restraint.keep(compute));
  CHECK(restraint.keep(copy));
  CHECK(restraint.release(true) == nullptr);
  guarded.end();
  CHECK(restraint.release(false) == &copy);
  CHECK(restraint.release(false) == nullptr);
}

TEST_CASE("Under prefer a memory-bound task starts where nothing else runs") {
  Guarded guarded;
  Restraint restraint;
  Task copy = task_of(guard_test_copy);
  elbow_guard_set(guarded.board, kLever, 2);
  restraint.look();
  guarded.begin();
  CHECK(restraint.keep(copy));
  CHECK(restraint.release(false) == nullptr);
  CHECK(restraint.release(true) == &copy);
}

TEST_CASE("A task waits for a tenth of a second at most, and none where the setting goes back") {
  Guarded guarded;
  Restraint restraint;
  Task first = task_of(guard_test_copy);
  Task second = task_of(guard_test_copy);
  elbow_guard_set(guarded.board, kLever, 3);
  restraint.look();
  guarded.begin();
  CHECK(restraint.keep(first));
  usleep(110'000);
  guarded.begin();  // more begins, so that messages still move
  CHECK(restraint.release(false) == &first);
  CHECK(restraint.keep(second));
  elbow_guard_set(guarded.board, kLever, 0);
  restraint.look();
  CHECK(restraint.release(false) == &second);
}
