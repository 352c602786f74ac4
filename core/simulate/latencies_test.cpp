#include "simulate/latencies.hpp"

#include <doctest/doctest.h>

using namespace elbowroom::simulate;

TEST_CASE("the mean is exact and quantiles are right to the width of a bin") {
  Latencies latencies;
  for (Time value = 1; value <= 1'000'000; value += 7) latencies.count(value);
  CHECK(latencies.number() == 142'858);
  CHECK(latencies.mean() == doctest::Approx(500'000).epsilon(1e-5));
  CHECK(latencies.quantile(0.9) == doctest::Approx(900'000).epsilon(0.001));
  CHECK(latencies.quantile(0.001) == doctest::Approx(1'000).epsilon(0.02));
}

TEST_CASE("without latencies there is no mean and no quantile") {
  const Latencies latencies;
  CHECK(latencies.mean() == 0);
  CHECK(latencies.quantile(0.9) == 0);
}

TEST_CASE("latencies up to seconds have a bin") {
  Latencies latencies;
  latencies.count(0);
  latencies.count(1'000'000'000'000);
  CHECK(latencies.quantile(1.0) == doctest::Approx(1e12).epsilon(0.02));
}
