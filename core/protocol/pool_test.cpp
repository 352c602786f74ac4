#include "protocol/pool.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/clock.hpp"

using namespace elbowroom;

namespace {

// Counts what it is asked for, and sleeps so that a chunk takes a while whatever the machine does.
class CountingWorker : public Worker {
 public:
  void first_touch() override {}
  std::uint64_t run(std::uint64_t items) override {
    done += items;
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    return items;
  }
  bool validate() const override { return valid; }
  std::uint64_t items_per_sweep() const override { return 0; }
  std::uint64_t done = 0;
  bool valid = true;
};

ComputingJob counting(CountingWorker*& worker) {
  auto counter = std::make_unique<CountingWorker>();
  worker = counter.get();
  return {std::move(counter), 1};
}

void nowhere(int) {}

void wait_until_warm(const ComputingPool& pool) {
  while (pool.warm_since() == 0) {
    std::this_thread::yield();
  }
}

}  // namespace

TEST_CASE("threads are bound to their cores, once each") {
  std::mutex mutex;
  std::multiset<int> bound;
  ComputingPool pool([&](int core) {
    const std::lock_guard lock(mutex);
    bound.insert(core);
  });
  for (int i = 0; i < 3; ++i) {
    pool.use({4, 7});
    pool.each([](std::size_t) {});
  }
  CHECK(bound == std::multiset<int>{4, 7});
}

TEST_CASE("a task runs on every thread of the pool and on no other") {
  ComputingPool pool(nowhere);
  pool.use({1, 2, 3});
  pool.each([](std::size_t) {});
  pool.use({3, 1});
  std::mutex mutex;
  std::set<std::size_t> ran;
  std::set<std::thread::id> threads;
  pool.each([&](std::size_t i) {
    const std::lock_guard lock(mutex);
    ran.insert(i);
    threads.insert(std::this_thread::get_id());
  });
  CHECK(ran == std::set<std::size_t>{0, 1});
  CHECK(threads.size() == 2);
}

TEST_CASE("what a thread throws arrives at the caller, and the pool works on") {
  ComputingPool pool(nowhere);
  pool.use({0, 1});
  CHECK_THROWS_WITH_AS(pool.each([](std::size_t i) {
    if (i == 1) {
      throw std::runtime_error("no memory");
    }
  }),
                       "no memory", std::runtime_error);
  CHECK_NOTHROW(pool.each([](std::size_t) {}));
}

TEST_CASE("a thread that cannot be bound says so instead of computing elsewhere") {
  ComputingPool pool([](int) { throw std::runtime_error("core is gone"); });
  pool.use({0});
  CHECK_THROWS_AS(pool.each([](std::size_t) {}), std::runtime_error);
}

TEST_CASE("computing goes on until told to stop and the log holds every item") {
  ComputingPool pool(nowhere);
  CountingWorker* first = nullptr;
  CountingWorker* second = nullptr;
  ComputingJob one = counting(first);
  ComputingJob two = counting(second);
  pool.use({0, 1});
  pool.start({&one, &two}, {3, 1e9}, nullptr);
  wait_until_warm(pool);
  const std::int64_t stop_time = now_ns();
  const std::vector<ComputingReport> reports = pool.stop();
  REQUIRE(reports.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    std::uint64_t items = 0;
    for (const Chunk& chunk : *reports[i].chunks) {
      items += chunk.items;
    }
    CHECK(items == (i == 0 ? first : second)->done);
    CHECK(reports[i].chunks->back().end >= stop_time);
    CHECK(covers(*reports[i].chunks, {pool.warm_since(), stop_time}));
  }
}

TEST_CASE("the pool says since when all threads are steady") {
  ComputingPool pool(nowhere);
  CountingWorker* worker = nullptr;
  ComputingJob job = counting(worker);
  pool.use({0});
  pool.start({&job}, {3, 1e9}, nullptr);
  while (pool.steady_since() == 0) {
    std::this_thread::yield();
  }
  CHECK(pool.steady_since() >= pool.warm_since());
  CHECK(pool.stop().front().steady);
}

TEST_CASE("a worker whose result is wrong is reported") {
  ComputingPool pool(nowhere);
  CountingWorker* worker = nullptr;
  ComputingJob job = counting(worker);
  worker->valid = false;
  pool.use({0});
  pool.start({&job}, {3, 0.05}, nullptr);
  wait_until_warm(pool);
  CHECK_FALSE(pool.stop().front().valid);
}

TEST_CASE("a thread that is not used computes nothing") {
  ComputingPool pool(nowhere);
  CountingWorker* parked = nullptr;
  CountingWorker* worker = nullptr;
  ComputingJob idle = counting(parked);
  ComputingJob job = counting(worker);
  pool.use({0, 1});
  pool.each([](std::size_t) {});
  pool.use({1});
  pool.start({&job}, {3, 0.05}, nullptr);
  wait_until_warm(pool);
  CHECK(pool.stop().size() == 1);
  CHECK(parked->done == 0);
  CHECK(worker->done > 0);
}
