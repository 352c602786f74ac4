#include "clock/job_clock.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "elbowroom/clock.h"

using namespace elbowroom::clock;

namespace {

// Processes as threads, messages as copies in queues, clocks as shifted ones of the host.
class Job {
 public:
  explicit Job(int size)
      : size_(size),
        sent_(static_cast<std::size_t>(size)),
        queues_(static_cast<std::size_t>(size) * static_cast<std::size_t>(size)) {}

  Peers peers(int rank) {
    return {rank, size_, [this, rank](int to, const void* bytes, std::size_t count) { put(rank, to, bytes, count); },
            [this, rank](int from, void* bytes, std::size_t count) { take(from, rank, bytes, count); }};
  }

  void run(const std::function<void(int rank)>& program) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back(program, rank);
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  // Messages of a process so far.
  int sent(int rank) {
    const std::lock_guard lock(mutex_);
    return sent_[static_cast<std::size_t>(rank)];
  }

 private:
  std::deque<std::vector<char>>& queue(int from, int to) {
    return queues_[static_cast<std::size_t>(from) * static_cast<std::size_t>(size_) + static_cast<std::size_t>(to)];
  }
  void put(int from, int to, const void* bytes, std::size_t count) {
    const std::lock_guard lock(mutex_);
    const char* first = static_cast<const char*>(bytes);
    queue(from, to).emplace_back(first, first + count);
    ++sent_[static_cast<std::size_t>(from)];
    changed_.notify_all();
  }
  void take(int from, int to, void* bytes, std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !queue(from, to).empty(); });
    REQUIRE(queue(from, to).front().size() == count);
    std::memcpy(bytes, queue(from, to).front().data(), count);
    queue(from, to).pop_front();
  }

  int size_;
  std::vector<int> sent_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::deque<std::vector<char>>> queues_;
};

// A host whose clock is `shift` ns ahead of this one's.
Source shifted(const std::string& name, std::int64_t shift) {
  return {name, {}, [shift] { return elbowroom::host_clock().now() + shift; }};
}

constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

TEST_CASE("Processes of one host share a clock, and are right to the ns without a message in between") {
  Job job(4);
  job.run([&](int rank) {
    JobClock clock(job.peers(rank), source_of_host(Wanted::best));
    CHECK(clock.clocks() == 1);
    const SyncPoint point = clock.synchronise();
    CHECK(point.offset.low == 0);
    CHECK(point.offset.high == 0);
  });
}

TEST_CASE("Clocks of several hosts are found apart by their true distance, inside the bounds") {
  for (const int hosts : {2, 3, 5}) {
    constexpr int kPerHost = 2;
    Job job(hosts * kPerHost);
    job.run([&](int rank) {
      const int host = rank / kPerHost;
      const std::int64_t shift = -(host * 17 + (host > 0 ? 100 : 0)) * kSecond;
      JobClock clock(job.peers(rank), shifted("host " + std::to_string(host), shift));
      CHECK(clock.clocks() == hosts);
      const SyncPoint point = clock.synchronise();
      CHECK(point.offset.low <= -shift);
      CHECK(-shift <= point.offset.high);
      const Corrected now = clock.now();
      CHECK(std::abs(now.time - elbowroom::host_clock().now()) < kSecond);
    });
  }
}

TEST_CASE("Ranks of a host need not follow one another") {
  Job job(6);
  job.run([&](int rank) {
    const std::int64_t shift = (rank % 2) * 40 * kSecond;
    JobClock clock(job.peers(rank), shifted(rank % 2 == 0 ? "even" : "odd", shift));
    CHECK(clock.clocks() == 2);
    const SyncPoint point = clock.synchronise();
    CHECK(point.offset.low <= -shift);
    CHECK(-shift <= point.offset.high);
  });
}

TEST_CASE("All leave a barrier at one instant of the reference") {
  constexpr int kSize = 5;
  Job job(kSize);
  std::vector<std::int64_t> left(kSize);
  std::vector<std::int64_t> bounds(kSize);
  job.run([&](int rank) {
    const std::int64_t shift = rank * 3 * kSecond;
    JobClock clock(job.peers(rank), shifted("host " + std::to_string(rank), shift));
    clock.synchronise();
    const Left barrier = clock.barrier();
    const auto own = static_cast<std::size_t>(rank);
    left[own] = barrier.point.local - shift;
    bounds[own] = barrier.point.offset.high - barrier.point.offset.low;
    CHECK(barrier.late >= 0);
    CHECK(clock.local() >= barrier.point.local);
  });
  for (std::size_t rank = 1; rank < kSize; ++rank) {
    CHECK(std::abs(left[rank] - left[0]) <= bounds[rank]);
  }
}

TEST_CASE("A second comparison tells the drift, and the error ahead of it is smaller than with one") {
  Job job(2);
  job.run([&](int rank) {
    const auto ticking = [rank] {
      const std::int64_t now = elbowroom::host_clock().now();
      return rank == 0 ? now : now + now / 50'000;  // 20 ppm
    };
    JobClock clock(job.peers(rank), {"host " + std::to_string(rank), {}, ticking});
    clock.synchronise();
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    clock.synchronise();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::int64_t before = elbowroom::host_clock().now();
    const Corrected now = clock.now();
    const std::int64_t after = elbowroom::host_clock().now();
    CHECK(now.time >= before - now.error);
    CHECK(now.time <= after + now.error);
  });
}

TEST_CASE("Where clocks cannot be compared all processes are told, and none waits for another for ever") {
  constexpr int kSize = 4;
  Job job(kSize);
  job.run([&](int rank) {
    std::int64_t read = 0;
    const auto jumping = [rank, read]() mutable {
      return elbowroom::host_clock().now() + (rank == 2 ? ++read / 100 * kSecond : 0);
    };
    JobClock clock(job.peers(rank), {"host " + std::to_string(rank), {}, jumping});
    CHECK_THROWS_AS(clock.synchronise(), Unsteady);
    CHECK_FALSE(clock.synchronised());
  });
}

TEST_CASE("All are told alike when the clocks are to be compared again, most of them without a message") {
  constexpr int kSize = 5;
  Job job(kSize);
  std::vector<std::vector<bool>> answers(kSize);
  job.run([&](int rank) {
    JobClock clock(job.peers(rank), shifted("host " + std::to_string(rank), rank * kSecond));
    CHECK(clock.due(1000));  // they were not compared yet
    clock.synchronise();
    const int sent = job.sent(rank);
    for (int i = 0; i < 100; ++i) {
      answers[static_cast<std::size_t>(rank)].push_back(clock.due(1000));
    }
    CHECK(job.sent(rank) - sent <= 7 * 3);  // seven calls of a hundred tell, up to three others each
    for (int i = 0; i < 100; ++i) {
      answers[static_cast<std::size_t>(rank)].push_back(clock.due(0));
    }
  });
  CHECK(std::count(answers[0].begin(), answers[0].begin() + 100, true) == 0);
  CHECK(std::count(answers[0].begin() + 100, answers[0].end(), true) >= 84);  // 16 calls may still be silent
  for (const std::vector<bool>& one : answers) {
    CHECK(one == answers[0]);
  }
}

TEST_CASE("The C interface refuses what cannot be, with a sentence") {
  CHECK(elbow_clock_new(nullptr) == nullptr);
  CHECK(errno == EINVAL);
  elbow_clock_peers peers{sizeof(elbow_clock_peers),
                          3,
                          2,
                          nullptr,
                          [](void*, int, const void*, std::size_t) { return 0; },
                          [](void*, int, void*, std::size_t) { return 0; }};
  CHECK(elbow_clock_new(&peers) == nullptr);
  CHECK(std::string(elbow_clock_error()).find("rank 3 of 2") != std::string::npos);
  peers = {sizeof peers, 0, 1, nullptr, nullptr, nullptr};
  elbow_clock* clock = elbow_clock_new(&peers);
  REQUIRE(clock != nullptr);
  std::int64_t time = 0;
  CHECK(elbow_clock_now(clock, &time, nullptr) == -1);
  CHECK(errno == EAGAIN);
  CHECK(elbow_clock_barrier(clock, nullptr, nullptr) == -1);
  CHECK(elbow_clock_synchronise(clock, nullptr) == 0);
  std::int64_t error = -1;
  CHECK(elbow_clock_now(clock, &time, &error) == 0);
  CHECK(error == 0);
  CHECK(elbow_clock_barrier(clock, nullptr, nullptr) == 0);
  int due = -1;
  CHECK(elbow_clock_due(clock, 3600, &due) == 0);
  CHECK(due == 0);
  CHECK(elbow_clock_due(clock, -1, &due) == -1);
  CHECK(std::string(elbow_clock_error()).find("seconds") != std::string::npos);
  CHECK(elbow_clock_due(clock, 1, nullptr) == -1);
  CHECK(elbow_clock_count(clock) == 1);
  CHECK(elbow_clock_now(clock, nullptr, nullptr) == -1);
  for (const std::int64_t answer : {elbow_clock_local(nullptr), std::int64_t{elbow_clock_count(nullptr)},
                                    std::int64_t{elbow_clock_synchronise(nullptr, nullptr)},
                                    std::int64_t{elbow_clock_barrier(nullptr, nullptr, nullptr)},
                                    std::int64_t{elbow_clock_calibrated(nullptr, nullptr)},
                                    std::int64_t{elbow_clock_anchor(nullptr, nullptr, nullptr)}}) {
    CHECK(answer == -1);
    CHECK(errno == EINVAL);
  }
  CHECK(elbow_clock_source(nullptr) == nullptr);
  elbow_clock_sync_point unsized{};
  CHECK(elbow_clock_synchronise(clock, &unsized) == -1);
  CHECK(errno == EINVAL);
  CHECK(std::string(elbow_clock_version()) == ELBOWROOM_VERSION);
  elbow_clock_free(clock);
  elbow_clock_free(nullptr);
}

TEST_CASE("A peer that cannot be reached is an error, not a hang or an exception") {
  elbow_clock_peers peers{sizeof(elbow_clock_peers),
                          0,
                          2,
                          nullptr,
                          [](void*, int, const void*, std::size_t) { return 0; },
                          [](void*, int, void*, std::size_t) { return -1; }};
  CHECK(elbow_clock_new(&peers) == nullptr);
  CHECK(errno == ECOMM);
  CHECK(std::string(elbow_clock_error()).find("receiving from rank 1 failed") != std::string::npos);
}
