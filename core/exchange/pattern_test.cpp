#include "exchange/pattern.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "protocol/payload.hpp"

using namespace elbowroom;

namespace {

// A ring of one rank sends to itself: the loops and the checks of contents without a second process.
struct Ring {
  explicit Ring(std::int64_t size, Reuse reuse = Reuse::same) {
    Request request;
    request.pattern = Pattern::ring;
    request.size = size;
    request.reuse = reuse;
    layout = message_layout(request, 1 << 10, 1 << 24);
    memory.resize(static_cast<std::size_t>(layout.bytes()));
    lane.pattern = Pattern::ring;
    lane.comm = MPI_COMM_SELF;
    lane.ranks = 1;
    lane.size = static_cast<int>(size);
    lane.buffers = Buffers(memory.data(), layout);
  }
  MessageLayout layout;
  std::vector<char> memory;
  Lane lane;
};

}  // namespace

TEST_CASE("a batch that arrives holds, at every size and for any number of iterations") {
  for (const std::int64_t size : {1, 4, 7, 8, 100, 4096, 100001}) {
    for (const std::int64_t iterations : {1, 2, 5}) {
      Ring ring(size);
      prepare_batch(ring.lane, iterations, 8);
      CHECK(run_batch(ring.lane, iterations, 8));
      CHECK(batch_holds(ring.lane, iterations, 8));
    }
  }
}

TEST_CASE("buffers that are cycled through hold as well") {
  Ring ring(256, Reuse::rotate);
  REQUIRE(ring.layout.count > 2);
  for (const std::int64_t iterations : {1, 3, 40}) {
    prepare_batch(ring.lane, iterations, 16);
    CHECK(run_batch(ring.lane, iterations, 16));
    CHECK(batch_holds(ring.lane, iterations, 16));
  }
}

TEST_CASE("a batch in which nothing arrived does not hold") {
  for (const std::int64_t size : {1, 4, 100, 100001}) {
    Ring ring(size);
    prepare_batch(ring.lane, 3, 8);
    run_batch(ring.lane, 3, 8);
    prepare_batch(ring.lane, 3, 16);
    CHECK_FALSE(batch_holds(ring.lane, 3, 16));
  }
}

TEST_CASE("one corrupted byte is seen, by the stamps at their places and by the whole check anywhere") {
  Ring ring(100001);
  prepare_batch(ring.lane, 1, 8);
  run_batch(ring.lane, 1, 8);
  ring.lane.buffers.received(0)[100000] ^= 1;
  CHECK_FALSE(batch_holds(ring.lane, 1, 8));
  CHECK(whole_message_holds(ring.lane, 24));
}
