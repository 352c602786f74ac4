#include "protocol/rounds.hpp"

#include <doctest/doctest.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

using namespace elbowroom;

namespace {

// Threads that take part in rounds, and add their shares up.
class Members {
 public:
  explicit Members(Rounds& rounds, std::size_t count) : rounds_(rounds) {
    rounds_.open(count);
    for (std::size_t i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        std::uint64_t round = 0;
        for (std::int64_t share = rounds_.next(round); share >= 0; share = rounds_.next(round)) {
          sum_ += share;
          rounds_.done();
        }
      });
    }
  }
  ~Members() {
    rounds_.close();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  std::int64_t after(std::int64_t share) {
    rounds_.begin(share);
    while (!rounds_.over()) {
      std::this_thread::yield();
    }
    return sum_;
  }

  // CPU time of all members, ns.
  std::int64_t used() {
    std::int64_t sum = 0;
    for (std::thread& thread : threads_) {
      clockid_t clock{};
      timespec time{};
      REQUIRE(pthread_getcpuclockid(thread.native_handle(), &clock) == 0);
      clock_gettime(clock, &time);
      sum += time.tv_sec * 1'000'000'000LL + time.tv_nsec;
    }
    return sum;
  }

 private:
  Rounds& rounds_;
  std::vector<std::thread> threads_;
  std::atomic<std::int64_t> sum_{0};
};

}  // namespace

TEST_CASE("Every thread takes its share of every round, whether or not they rested between") {
  Rounds rounds;
  Members members(rounds, 3);
  std::int64_t sum = 0;
  for (int i = 1; i <= 200; ++i) {
    if (i % 3 == 0) {
      rounds.rest();
    }
    if (i % 2 == 0) {
      rounds.rest();
    }
    rounds.wake();
    sum += 3 * i;
    REQUIRE(members.after(i) == sum);
  }
}

TEST_CASE("Threads that rest use no core") {
  Rounds rounds;
  Members members(rounds, 2);
  rounds.rest();
  // One that is late in blocking runs in a window or two, one that polls in nearly all.
  int busy = 0;
  for (int window = 0; window < 20; ++window) {
    const std::int64_t before = members.used();
    usleep(10'000);
    busy += members.used() == before ? 0 : 1;
  }
  CHECK(busy <= 5);
}

TEST_CASE("Threads that rest end when there are no more rounds") {
  Rounds rounds;
  Members members(rounds, 2);
  rounds.rest();
}
