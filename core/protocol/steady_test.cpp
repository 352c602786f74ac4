#include "protocol/steady.hpp"

#include <doctest/doctest.h>

#include <cmath>

using elbowroom::coefficient_of_variation;
using elbowroom::SteadyDetector;

TEST_CASE("equal samples are steady as soon as the window is full, and from the first one") {
  SteadyDetector detector(7, 0.05);
  for (int i = 0; i < 6; ++i) {
    CHECK_FALSE(detector.add(10.0));
  }
  CHECK(detector.add(10.0));
  CHECK(detector.first() == 0);
}

TEST_CASE("cold samples are dropped: the steady part begins after them") {
  SteadyDetector detector(3, 0.05);
  for (const double sample : {30.0, 20.0, 10.0, 10.1}) {
    CHECK_FALSE(detector.add(sample));
  }
  CHECK(detector.add(9.9));
  CHECK(detector.first() == 2);
}

TEST_CASE("a quantity that keeps moving is never steady") {
  SteadyDetector detector(7, 0.05);
  double sample = 1;
  for (int i = 0; i < 200; ++i) {
    CHECK_FALSE(detector.add(sample));
    sample *= 1.1;
  }
}

TEST_CASE("the decision is kept when later samples vary") {
  SteadyDetector detector(3, 0.05);
  for (int i = 0; i < 3; ++i) {
    detector.add(1.0);
  }
  CHECK(detector.add(100.0));
  CHECK(detector.first() == 0);
}

TEST_CASE("the coefficient of variation of samples without a positive mean is infinite, so never steady") {
  CHECK(std::isinf(coefficient_of_variation({0.0, 0.0, 0.0})));
  CHECK(std::isinf(coefficient_of_variation({1.0})));
  CHECK(coefficient_of_variation({1.0, 3.0}) == doctest::Approx(std::sqrt(2.0) / 2.0));
}
