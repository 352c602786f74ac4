#include "simulate/wheel.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "simulate/random.hpp"

using namespace elbowroom::simulate;

TEST_CASE("events come in the order of their times, near ones and far ones") {
  Random random(7);
  Wheel wheel(500);
  std::vector<Time> times;
  for (Id id = 0; id < 500; ++id) {
    const Time at = static_cast<Time>(random.below(id % 5 == 0 ? 50'000'000 : 900'000));
    times.push_back(at);
    wheel.schedule(id, at);
  }
  std::sort(times.begin(), times.end());
  for (const Time at : times) {
    REQUIRE(wheel.next() != kNone);
    CHECK(wheel.now() == at);
  }
  CHECK(wheel.next() == kNone);
}

TEST_CASE("events that are scheduled anew while time passes stay in order") {
  Random random(3);
  Wheel wheel(40);
  for (Id id = 0; id < 40; ++id) wheel.schedule(id, id);
  Time last = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Id id = wheel.next();
    REQUIRE(id != kNone);
    REQUIRE(wheel.now() >= last);
    last = wheel.now();
    wheel.schedule(id, last + static_cast<Time>(random.below(i % 100 == 0 ? 30'000'000 : 300'000)));
  }
}

TEST_CASE("events of one time come in the order they were scheduled") {
  Wheel wheel(4);
  for (const Id id : {2U, 0U, 3U, 1U}) wheel.schedule(id, 1000);
  for (const Id id : {2U, 0U, 3U, 1U}) CHECK(wheel.next() == id);
}
