#include "protocol/batching.hpp"

#include <doctest/doctest.h>

#include <initializer_list>

#include "protocol/due_message.hpp"

using namespace elbowroom;

TEST_CASE("a batch lasts a 64th of the window, or what the clock needs if that is longer") {
  CHECK(batch_target_ns(0.128, 3000) == doctest::Approx(2e6));
  CHECK(batch_target_ns(1e-6, 3000) == doctest::Approx(3000));
}

TEST_CASE("calibration converges to a batch that fits for any duration of a message") {
  for (const double per_iteration : {50.0, 300.0, 5e3, 7e5, 2e7}) {
    const double target = 2e6;
    std::int64_t iterations = 1;
    int rounds = 0;
    while (!batch_fits(iterations, per_iteration * static_cast<double>(iterations), target, 1)) {
      iterations = next_iterations(iterations, per_iteration * static_cast<double>(iterations), target, 1);
      REQUIRE(++rounds < 8);
    }
  }
}

TEST_CASE("a message longer than the batch makes batches of the fewest iterations allowed") {
  CHECK(batch_fits(1, 1e9, 2e6, 1));
  CHECK_FALSE(batch_fits(8, 1e9, 2e6, 1));
  CHECK(next_iterations(8, 1e9, 2e6, 2) == 2);
}

TEST_CASE("as many messages are due as the window has periods, fewer when a round trip is longer") {
  CHECK(due_messages(1.0, 1e-3, 5e3) == 1000);
  CHECK(due_messages(1.0, 1e-3, 4e6) == 250);
  CHECK(due_messages(1e-6, 1.0, 5e3) == 2);
}
