#include "nic/board.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

using namespace elbowroom::nic;

namespace {

constexpr Nic kNic{1e8, 65536, 0};

std::string name_of_test() { return "test-" + std::to_string(getpid()); }

// What a process made by fork returns.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string path_of(const std::string& name) { return "/elbow-nic-" + std::to_string(geteuid()) + "-" + name; }

bool exists(const std::string& name) { return access(("/dev/shm" + path_of(name)).c_str(), F_OK) == 0; }

// A file of that name with `bytes` zeros; the descriptor.
int made_file(const std::string& name, off_t bytes) {
  const int file = shm_open(path_of(name).c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  REQUIRE(file >= 0);
  REQUIRE(ftruncate(file, bytes) == 0);
  return file;
}

std::string refusal_of(const std::string& name) {
  try {
    Board board;
    board.attach(name, kNic);
    board.detach();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

BoardMemory* mapped(int file) {
  void* const memory = mmap(nullptr, sizeof(BoardMemory), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  REQUIRE(memory != MAP_FAILED);
  return static_cast<BoardMemory*>(memory);
}

Board* g_board = nullptr;
int g_flow = -1;

}  // namespace

TEST_CASE("Processes with one name share the nodes' tokens, and the first one's settings hold") {
  const std::string name = name_of_test();
  Board board;
  board.attach(name, {1e6, 50000, 0});
  const int flow = board.open_flow(0, 1);
  CHECK(board.take(flow, 50000).bytes == 50000);
  const int missing = in_child([&name] {
    Board other;
    other.attach(name, kNic);
    return other.nic().bandwidth == 1e6 && other.take(other.open_flow(0, 1), 50000).bytes == 0 ? 0 : 1;
  });
  CHECK(missing == 0);
  board.detach();
  CHECK(!exists(name));
}

TEST_CASE("What a killed process left behind is cleared by the next one") {
  const std::string name = name_of_test();
  in_child([&name] {
    Board killed;
    killed.attach(name, {1e6, 50000, 0});
    killed.enter({1000, 0}, 3);
    killed.take(killed.open_flow(0, 1), 50000);
    return 0;  // _exit: nothing is removed
  });
  CHECK(exists(name));
  Board board;
  board.attach(name, kNic);
  CHECK(board.nic().bandwidth == kNic.bandwidth);
  CHECK(board.node_of({1000, 0}) == kNobody);
  CHECK(board.take(board.open_flow(0, 1), 50000).bytes == 50000);
  board.detach();
}

TEST_CASE("A connection is known until its process leaves it or ends") {
  const std::string name = name_of_test();
  Board board;
  board.attach(name, kNic);
  board.enter({40000, 5000}, 2);
  CHECK(board.node_of({40000, 5000}) == 2);
  CHECK(board.node_of({5000, 40000}) == kNobody);
  board.enter({40000, 5000}, 4);
  CHECK(board.node_of({40000, 5000}) == 4);
  board.leave({40000, 5000});
  CHECK(board.node_of({40000, 5000}) == kNobody);
  in_child([&] {
    board.enter({40001, 5000}, 1);
    return 0;
  });
  CHECK(board.node_of({40001, 5000}) == kNobody);
  board.detach();
}

TEST_CASE("The flows of processes that have ended are used again when there is no other") {
  const std::string name = name_of_test();
  Board board;
  board.attach(name, kNic);
  in_child([&] {
    while (board.open_flow(0, 1) >= 0) {
    }
    return 0;
  });
  CHECK(board.open_flow(0, 1) >= 0);
  board.detach();
}

TEST_CASE("A child of fork that detaches leaves the memory and the parent's hold on it") {
  const std::string name = name_of_test();
  Board board;
  board.attach(name, kNic);
  in_child([&] {
    board.attach_again();
    board.detach();
    return 0;
  });
  CHECK(exists(name));
  // Nobody else is alone with it.
  const int file = shm_open(path_of(name).c_str(), O_RDWR, 0);
  CHECK(flock(file, LOCK_EX | LOCK_NB) != 0);
  close(file);
  board.detach();
  CHECK(!exists(name));
}

TEST_CASE("A child of fork holds the memory when its parent has detached") {
  const std::string name = name_of_test();
  Board board;
  board.attach(name, kNic);
  int attached[2];
  int detached[2];
  REQUIRE(pipe(attached) == 0);
  REQUIRE(pipe(detached) == 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    board.attach_again();
    const bool passed = write(attached[1], "", 1) == 1 && read(detached[0], &byte, 1) == 1;
    const bool held = exists(name);
    board.detach();
    _exit(passed && held && !exists(name) ? 0 : 1);
  }
  char byte = 0;
  CHECK(read(attached[0], &byte, 1) == 1);
  board.detach();
  CHECK(write(detached[1], "", 1) == 1);
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("A child of fork that did not attach again removes nothing") {
  const std::string name = name_of_test();
  Board board;
  board.attach(name, kNic);
  in_child([&] {
    board.detach();
    return 0;
  });
  CHECK(exists(name));
  board.detach();
  CHECK(!exists(name));
}

TEST_CASE("Memory that other users may write, or that is another user's, is refused") {
  const std::string name = name_of_test();
  const int file = made_file(name, sizeof(BoardMemory));
  REQUIRE(fchmod(file, 0666) == 0);
  CHECK(refusal_of(name).find("has mode 666") != std::string::npos);
  REQUIRE(fchmod(file, 0600) == 0);
  if (geteuid() == 0) {
    REQUIRE(fchown(file, 65534, 65534) == 0);
    CHECK(refusal_of(name).find("belongs to user 65534") != std::string::npos);
  }
  close(file);
  shm_unlink(path_of(name).c_str());
}

TEST_CASE("Memory that another release uses is refused and left as it is") {
  const std::string name = name_of_test();
  int file = made_file(name, sizeof(BoardMemory) + 4096);
  REQUIRE(flock(file, LOCK_SH) == 0);
  CHECK(refusal_of(name).find("another release") != std::string::npos);
  REQUIRE(ftruncate(file, sizeof(BoardMemory)) == 0);
  BoardMemory* const memory = mapped(file);
  memory->format = 7;
  CHECK(refusal_of(name).find("another release") != std::string::npos);
  CHECK(memory->format == 7);
  munmap(memory, sizeof(BoardMemory));
  close(file);
  shm_unlink(path_of(name).c_str());
}

TEST_CASE("A lock that cannot be taken ends the process") {
  const std::string name = name_of_test();
  Board board;
  board.attach(name, kNic);
  const int file = shm_open(path_of(name).c_str(), O_RDWR, 0);
  BoardMemory* const memory = mapped(file);
  in_child([&] { return pthread_mutex_lock(&memory->mutex); });
  REQUIRE(pthread_mutex_lock(&memory->mutex) == EOWNERDEAD);
  REQUIRE(pthread_mutex_unlock(&memory->mutex) == 0);  // not made consistent: ENOTRECOVERABLE from now on
  CHECK(in_child([&] {
          close(STDERR_FILENO);
          board.open_flow(0, 1);
          return 0;
        }) == 1);
  munmap(memory, sizeof(BoardMemory));
  close(file);
  board.detach();
}

TEST_CASE("A signal handler may send while its thread holds the lock") {
  const std::string name = name_of_test();
  Board board;
  board.attach(name, {1e12, 1e6, 0});
  const pid_t child = fork();
  if (child == 0) {
    g_board = &board;
    g_flow = board.open_flow(0, 1);
    struct sigaction action {};
    action.sa_handler = [](int) { g_board->take(g_flow, 1); };
    sigaction(SIGALRM, &action, nullptr);
    const itimerval often{{0, 20}, {0, 20}};  // us
    setitimer(ITIMER_REAL, &often, nullptr);
    for (int i = 0; i < 30'000; ++i) {
      board.take(g_flow, 1);
    }
    _exit(0);
  }
  // Only a process that waits for itself takes so long.
  int status = -1;
  pid_t ended = 0;
  for (int waited = 0; waited < 30'000 && ended == 0; ++waited) {
    usleep(1000);
    ended = waitpid(child, &status, WNOHANG);
  }
  if (ended == 0) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  CHECK(status == 0);
  board.detach();
}
