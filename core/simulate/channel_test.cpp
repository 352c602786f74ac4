#include "simulate/channel.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace elbowroom::simulate;

namespace {

Node node() {
  Node result;
  result.banks = 4;
  result.row = 40'000;
  result.read_line = 3'000;
  result.write_line = 5'000;
  result.turnaround = 10'000;
  result.write_batch = 2;
  result.read_queue = 4;
  result.write_queue = 4;
  result.lookahead = 4;
  return result;
}

}  // namespace

TEST_CASE("a queue is full at its capacity, for reads and writes apart") {
  const Node shape = node();
  Channel channel(shape);
  for (Id id = 0; id < 4; ++id) {
    CHECK(channel.room(false));
    channel.admit(false, id, {1, 0}, 3'000, 0);
  }
  CHECK_FALSE(channel.room(false));
  CHECK(channel.room(true));
}

TEST_CASE("the first line of a row waits until the row is open, the next one only for the bus") {
  const Node shape = node();
  Channel channel(shape);
  channel.admit(false, 1, {1, 0}, 3'000, 0);
  channel.admit(false, 2, {1, 0}, 3'000, 0);
  CHECK(channel.serve(0).end == 43'000);
  CHECK(channel.serve(43'000).end == 46'000);
}

TEST_CASE("a line whose row is open overtakes one whose row is not") {
  const Node shape = node();
  Channel channel(shape);
  channel.admit(false, 1, {1, 0}, 3'000, 0);
  CHECK(channel.serve(0).request == 1);
  channel.admit(false, 2, {2, 1}, 3'000, 43'000);
  channel.admit(false, 3, {1, 0}, 3'000, 43'000);
  CHECK(channel.serve(43'000).request == 3);
  CHECK(channel.serve(46'000).request == 2);
}

TEST_CASE("lines of the row that was open before are served until the bank has opened the other one") {
  const Node shape = node();
  Channel channel(shape);
  channel.admit(false, 1, {1, 0}, 3'000, 0);
  channel.admit(false, 2, {2, 0}, 3'000, 40'000);
  channel.admit(false, 3, {1, 0}, 3'000, 41'000);
  CHECK(channel.serve(41'000).request == 1);
  const auto served = channel.serve(44'000);
  CHECK(served.request == 3);
  CHECK(served.end == 47'000);
  CHECK(channel.serve(47'000).end == 83'000);
}

TEST_CASE("writes wait for a batch while there are reads, and turning the bus round takes time") {
  const Node shape = node();
  Channel channel(shape);
  channel.admit(false, 1, {1, 0}, 3'000, 0);
  channel.admit(false, 2, {1, 0}, 3'000, 0);
  channel.admit(true, kNone, {1, 0}, 5'000, 0);
  CHECK(channel.serve(100'000).request == 1);
  channel.admit(true, kNone, {1, 0}, 5'000, 103'000);
  const auto first = channel.serve(103'000);
  CHECK(first.request == kNone);
  CHECK(first.end == 118'000);
  CHECK(channel.serve(118'000).end == 123'000);
  const auto read = channel.serve(123'000);
  CHECK(read.request == 2);
  CHECK(read.end == 136'000);
}

TEST_CASE("after a batch of writes as many reads are served, however many writes wait") {
  const Node shape = node();
  Channel channel(shape);
  for (Id id = 0; id < 4; ++id) {
    channel.admit(false, id, {1, 0}, 3'000, 0);
    channel.admit(true, kNone, {1, 0}, 5'000, 0);
  }
  std::string served;
  for (Time now = 100'000; channel.has_work();) {
    const auto line = channel.serve(now);
    served += line.request == kNone ? 'w' : 'r';
    now = line.end;
  }
  CHECK(served == "wwrrwwrr");
}
