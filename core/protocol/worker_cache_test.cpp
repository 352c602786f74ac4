#include "protocol/worker_cache.hpp"

#include <doctest/doctest.h>

#include "machine/machine.hpp"

using namespace elbowroom;

namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

int a_node() { return Machine::here().nodes().front().number; }

WorkerKey key(std::size_t bytes, const char* kernel = "triad", int core = 0) {
  return {kernel, 1, bytes, core, a_node()};
}

ComputingPool& pool_of(int cores) {
  static ComputingPool pool([](int) {});
  std::vector<int> list;
  for (int i = 0; i < cores; ++i) {
    list.push_back(i);
  }
  pool.use(list);
  return pool;
}

}  // namespace

TEST_CASE("the same request gets the same memory back") {
  WorkerCache cache(64 * kMib);
  const void* first = cache.get({key(4 * kMib)}, pool_of(1)).front()->arena.data();
  cache.get({key(6 * kMib)}, pool_of(1));
  CHECK(cache.get({key(4 * kMib)}, pool_of(1)).front()->arena.data() == first);
}

TEST_CASE("new workers are touched and compute what they must") {
  WorkerCache cache(64 * kMib);
  const auto workers = cache.get({key(4 * kMib), key(4 * kMib, "copy", 1)}, pool_of(2));
  REQUIRE(workers.size() == 2);
  for (CachedWorker* worker : workers) {
    worker->job.worker->run(1000);
    CHECK(worker->job.worker->validate());
  }
}

TEST_CASE("memory stays within the cap by giving up what was not used for longest") {
  WorkerCache cache(10 * kMib);
  for (std::size_t i = 0; i < 8; ++i) {
    cache.get({key((2 + i % 3) * kMib, "triad", static_cast<int>(i))}, pool_of(1));
    CHECK(cache.bytes_on(a_node()) <= 10 * kMib);
  }
}

TEST_CASE("a full cache takes over memory of the same core instead of asking for more") {
  WorkerCache cache(5 * kMib);
  const void* first = cache.get({key(4 * kMib)}, pool_of(1)).front()->arena.data();
  CHECK(cache.get({key(4 * kMib, "copy")}, pool_of(1)).front()->arena.data() == first);
}

TEST_CASE("one request may need more than the cap") {
  WorkerCache cache(1 * kMib);
  CHECK(cache.get({key(2 * kMib), key(2 * kMib, "triad", 1)}, pool_of(2)).size() == 2);
}

TEST_CASE("register-only kernels have no memory") {
  WorkerCache cache(kMib);
  CHECK(cache.get({{"prime", 1, 0, 0, a_node()}}, pool_of(1)).front()->arena.size() == 0);
}

TEST_CASE("a worker that cannot be made leaves nothing behind") {
  WorkerCache cache(64 * kMib);
  CHECK_THROWS(cache.get({key(1)}, pool_of(1)));
  CHECK_THROWS(cache.get({key(1)}, pool_of(1)));
}
