#include "elbowroom/guard.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "c_interface.hpp"
#include "guard/board.hpp"

namespace elbowroom::guard {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "guard-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  std::string board() const { return (path / "board").string(); }
};

struct Guard {
  explicit Guard(const std::string& path, std::uint32_t ranks = 4) : guard(elbow_guard_make(path.c_str(), ranks)) {
    REQUIRE_MESSAGE(guard != nullptr, elbow_guard_error());
  }
  ~Guard() { elbow_guard_close(guard); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  elbow_guard* guard;

  elbow_guard_traffic traffic() const {
    auto result = c_interface::sized<elbow_guard_traffic>();
    REQUIRE(elbow_guard_read(guard, &result) == 0);
    return result;
  }
};

// A process of its own, which the parent waits for.
template <typename Work>
void in_child(Work work) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
}

TEST_CASE("messages of two ranks are in flight from their begin to their end") {
  const Folder folder;
  const Guard writer(folder.board());
  const Guard reader(folder.board());
  elbow_guard_rank* const first = elbow_guard_join(writer.guard, 0, 0);
  elbow_guard_rank* const second = elbow_guard_join(writer.guard, 1, 1);
  elbow_guard_begin(first, ELBOW_GUARD_OUT, 1000);
  elbow_guard_begin(second, ELBOW_GUARD_IN, 24);
  CHECK(elbow_guard_in_flight(reader.guard) == 1024);
  elbow_guard_end(first, ELBOW_GUARD_OUT, 1000);
  const elbow_guard_traffic traffic = reader.traffic();
  CHECK(traffic.bytes[ELBOW_GUARD_OUT] == 0);
  CHECK(traffic.bytes[ELBOW_GUARD_IN] == 24);
  CHECK(traffic.messages[ELBOW_GUARD_IN] == 1);
  CHECK(traffic.moved[ELBOW_GUARD_OUT] == 1000);
  CHECK(traffic.ranks == 2);
  elbow_guard_leave(first);
  elbow_guard_leave(second);
  CHECK(elbow_guard_in_flight(reader.guard) == 0);
  CHECK(reader.traffic().ranks == 0);
}

TEST_CASE("what a lever held back is added up for its process, which has a place") {
  const Folder folder;
  const Guard own(folder.board());
  CHECK(elbow_guard_held(own.guard, 1'000'000) == -1);
  CHECK(errno == ESRCH);
  elbow_guard_rank* const rank = elbow_guard_join(own.guard, 0, 0);
  CHECK(elbow_guard_held(own.guard, 1'000'000) == 0);
  CHECK(elbow_guard_held(own.guard, 500'000) == 0);
  const elbowroom::guard::Board view(folder.board(), 0);
  CHECK(view.places()[0].held == 150);
  elbow_guard_leave(rank);
}

TEST_CASE("threads of a rank lose no message") {
  const Folder folder;
  const Guard own(folder.board());
  elbow_guard_rank* const place = elbow_guard_join(own.guard, 0, 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int message = 0; message < 20000; ++message) {
        elbow_guard_begin(place, ELBOW_GUARD_OUT, 3);
        elbow_guard_end(place, ELBOW_GUARD_OUT, 3);
      }
    });
  }
  for (std::thread& one : threads) {
    one.join();
  }
  CHECK(own.traffic().moved[ELBOW_GUARD_OUT] == 240000);
  CHECK(elbow_guard_in_flight(own.guard) == 0);
  elbow_guard_leave(place);
}

TEST_CASE("the pressure is the share of the scale, at most 1, and has edges with a width") {
  const Folder folder;
  const Guard own(folder.board());
  CHECK(elbow_guard_set_scale(own.guard, 1000 * kUnit) == 0);
  elbow_guard_rank* const place = elbow_guard_join(own.guard, 0, 0);
  std::vector<int> edges;
  const auto edge = [](void* context, int above, double) { static_cast<std::vector<int>*>(context)->push_back(above); };
  REQUIRE(elbow_guard_watch(own.guard, 0.8, 0.2, edge, &edges) == 0);
  const auto poll_with = [&](std::uint64_t units) {
    const std::uint64_t bytes = units * kUnit;
    elbow_guard_begin(place, ELBOW_GUARD_OUT, bytes);
    const int above = elbow_guard_poll(own.guard);
    elbow_guard_end(place, ELBOW_GUARD_OUT, bytes);
    return above;
  };
  CHECK(poll_with(799) == 0);
  CHECK(poll_with(5000) == 1);
  CHECK(poll_with(300) == 1);
  CHECK(poll_with(200) == 0);
  CHECK(edges == std::vector<int>{1, 0});
  elbow_guard_begin(place, ELBOW_GUARD_OUT, 5000 * kUnit);
  CHECK(elbow_guard_pressure(own.guard) == 1.0);
  elbow_guard_leave(place);
}

TEST_CASE("the pressure is that of all ranks, each with less than a unit too little in each direction") {
  const Folder folder;
  const Guard own(folder.board(), 70);
  REQUIRE(elbow_guard_set_scale(own.guard, 1000 * kUnit) == 0);
  std::uint64_t whole = 0;
  for (int rank = 0; rank < 70; ++rank) {
    elbow_guard_rank* const place = elbow_guard_join(own.guard, rank, rank % 2);
    for (int message = 0; message < 3; ++message) {
      elbow_guard_begin(place, message % 2, 5 * kUnit + 100);
      elbow_guard_begin(place, message % 2, 7000);
      elbow_guard_begin(place, message % 2, kUnit - 1);
    }
    elbow_guard_end(place, ELBOW_GUARD_IN, 5 * kUnit + 100);
    whole += (2 * (5 * kUnit + 100 + 7000 + kUnit - 1) + 7000 + kUnit - 1) / kUnit;
  }
  const double units = elbow_guard_pressure(own.guard) * 1000;
  CHECK(units <= static_cast<double>(whole));
  CHECK(units > static_cast<double>(whole) - 2 * 70);
}

TEST_CASE("messages that several threads begin and end at once leave no pressure") {
  const Folder folder;
  const Guard own(folder.board());
  elbow_guard_rank* const place = elbow_guard_join(own.guard, 0, 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int message = 0; message < 20000; ++message) {
        elbow_guard_begin(place, i % 2, 3 * kUnit / 4);
        elbow_guard_end(place, i % 2, 3 * kUnit / 4);
      }
    });
  }
  for (std::thread& one : threads) {
    one.join();
  }
  CHECK(elbow_guard_pressure(own.guard) == 0.0);
  elbow_guard_begin(place, ELBOW_GUARD_OUT, kUnit);
  CHECK(elbow_guard_pressure(own.guard) == static_cast<double>(kUnit) / kScale);
  elbow_guard_leave(place);
}

TEST_CASE("the place of a process that was killed is free again, and its messages are gone") {
  const Folder folder;
  const Guard own(folder.board(), 1);
  in_child([&] {
    elbow_guard_begin(elbow_guard_join(own.guard, 7, 0), ELBOW_GUARD_OUT, 1 << 20);
    raise(SIGKILL);
  });
  CHECK(elbow_guard_in_flight(own.guard) == 1 << 20);
  CHECK(elbow_guard_pressure(own.guard) == 1.0);
  CHECK(elbow_guard_sweep(own.guard) == 1);
  CHECK(elbow_guard_in_flight(own.guard) == 0);
  CHECK(elbow_guard_pressure(own.guard) == 0.0);
  elbow_guard_rank* const place = elbow_guard_join(own.guard, 0, 0);
  CHECK(place != nullptr);
  CHECK(elbow_guard_join(own.guard, 1, 0) == nullptr);
  CHECK(errno == ENOSPC);
  elbow_guard_leave(place);
}

TEST_CASE("processes that make a board at once share one") {
  const Folder folder;
  for (int child = 0; child < 8; ++child) {
    if (fork() == 0) {
      elbow_guard* const guard = elbow_guard_make(folder.board().c_str(), 64);
      elbow_guard_begin(elbow_guard_join(guard, child, 0), ELBOW_GUARD_OUT, 1);
      _exit(0);
    }
  }
  while (wait(nullptr) > 0) {
  }
  const Guard own(folder.board());
  CHECK(elbow_guard_sweep(own.guard) + own.traffic().ranks >= 1);
  CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("settings are read by others, and wrong ones are refused") {
  const Folder folder;
  const Guard writer(folder.board());
  const Guard reader(folder.board());
  CHECK(elbow_guard_setting(reader.guard, 3) == 0);
  CHECK(elbow_guard_set(writer.guard, 3, 17) == 0);
  CHECK(elbow_guard_setting(reader.guard, 3) == 17);
  CHECK(elbow_guard_set(writer.guard, ELBOW_GUARD_SETTINGS, 1) == -1);
  CHECK(errno == EINVAL);
  CHECK(elbow_guard_set_scale(writer.guard, 0) == -1);
  CHECK(elbow_guard_watch(
            writer.guard, 0.2, 0.8, [](void*, int, double) {}, nullptr) == -1);
  CHECK(elbow_guard_poll(writer.guard) == -1);
}

TEST_CASE("files that are no boards are refused with what they are") {
  const Folder folder;
  const auto refused = [&](const char* contents) {
    std::ofstream(folder.board()) << contents;
    elbow_guard* const guard = elbow_guard_open(folder.board().c_str());
    elbow_guard_close(guard);
    fs::remove(folder.board());
    return guard == nullptr && errno == EBADMSG;
  };
  CHECK(refused(""));
  CHECK(refused("ELBGUARD"));
  CHECK(refused(std::string(5000, 'x').c_str()));
  CHECK(elbow_guard_open(folder.board().c_str()) == nullptr);
  CHECK(errno == ENOENT);
  { const Guard whole(folder.board()); }
  fs::resize_file(folder.board(), 4096);
  CHECK(elbow_guard_open(folder.board().c_str()) == nullptr);
  CHECK(errno == EBADMSG);
}

TEST_CASE("without a path the board of the environment is opened, and without one there is an error") {
  const Folder folder;
  const Guard own(folder.board());
  setenv("ELBOW_GUARD", folder.board().c_str(), 1);
  elbow_guard* const guard = elbow_guard_open(nullptr);
  CHECK(guard != nullptr);
  elbow_guard_close(guard);
  setenv("ELBOW_GUARD", (folder.path / "none").c_str(), 1);
  CHECK(elbow_guard_open(nullptr) == nullptr);
  CHECK(errno == ENOENT);
  unsetenv("ELBOW_GUARD");
}

TEST_CASE("nothing is NULL but what may be") {
  CHECK(elbow_guard_in_flight(nullptr) == 0);
  CHECK(elbow_guard_read(nullptr, nullptr) == -1);
  CHECK(errno == EINVAL);
  elbow_guard_begin(nullptr, ELBOW_GUARD_OUT, 1);
  elbow_guard_leave(nullptr);
  elbow_guard_close(nullptr);
}

}  // namespace
}  // namespace elbowroom::guard
