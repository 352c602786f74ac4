#include "nic/board.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

bool exists(const std::string& name) {
  return access(("/dev/shm/elbow-nic-" + std::to_string(geteuid()) + "-" + name).c_str(), F_OK) == 0;
}

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
