#include "envelope.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

#include "simulated.hpp"

using namespace elbowroom::clock;

TEST_CASE("One exchange bounds the offset by its ends") {
  Envelope envelope;
  CHECK_FALSE(envelope.offset());
  CHECK(envelope.add({100, 1060, 130}));
  const Offset result = envelope.offset().value();
  CHECK(result.low == -960);
  CHECK(result.high == -930);
  CHECK(result.offset == -945);
}

TEST_CASE("Bounds are those of all exchanges, the offset that of the quickest inside them") {
  Envelope envelope;
  CHECK(envelope.add({0, 50, 100}));        // -50 to 50
  CHECK(envelope.add({1000, 1010, 1070}));  // -10 to 60
  const Offset result = envelope.offset().value();
  CHECK(result.low == -10);
  CHECK(result.high == 50);
  CHECK(result.offset == 25);
  CHECK(envelope.round_trip() == 70);
}

TEST_CASE("An exchange that contradicts the others, or ends before it began, is refused and changes nothing") {
  Envelope envelope;
  CHECK(envelope.add({0, 50, 100}));
  CHECK_FALSE(envelope.add({200, 5000, 300}));
  CHECK_FALSE(envelope.add({200, 250, 150}));
  CHECK(envelope.offset().value().low == -50);
  CHECK(envelope.exchanges() == 1);
}

TEST_CASE("Bounds of exchanges long ago widen by the drift") {
  Envelope envelope(1e-3);
  CHECK(envelope.add({0, 50, 100}));
  CHECK(envelope.add({1'000'000, 1'000'050, 1'000'100}));
  const Offset result = envelope.offset().value();
  CHECK(result.low == -50);
  CHECK(result.high == 50);
  CHECK(envelope.add({1'000'200, 1'000'200, 1'000'300}));  // 0 to 100
  CHECK(envelope.offset().value().high == 51);
}

TEST_CASE("The true offset is always inside the bounds, however uneven and lossy the link") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Chance chance(seed);
    ClockSetup setup;
    setup.offset = static_cast<std::int64_t>(chance.normal() * 1e12);
    setup.drift_ppm = chance.even() * 400 - 200;
    const SimulatedClock reference({}, 1'000'000'000, seed);
    const SimulatedClock other(setup, 1'000'000'000, seed + 1);
    LinkSetup link;
    link.asymmetry = chance.even() * 2 - 1;
    link.jitter_ns = chance.even() * 5000;
    link.heavy = seed % 2 == 0;
    link.loss = 0.02;
    link.preempted = 0.1;
    std::int64_t truth = 1000;
    std::int64_t exchanges = 0;
    const auto result = simulated_comparison(reference, other, link, chance, truth, exchanges);
    REQUIRE(result);
    const std::int64_t right = result->at - other.at(result->at);  // the reference shows the truth
    CAPTURE(seed);
    CHECK(exchanges >= 400);
    CHECK(result->offset.low <= right);
    CHECK(right <= result->offset.high);
    CHECK(result->offset.low <= result->offset.offset);
    CHECK(result->offset.offset <= result->offset.high);
  }
}

TEST_CASE("On an even link the offset is right to a part of the jitter, at any rate of the clocks") {
  for (const double drift : {-100.0, 0.0, 100.0}) {
    Chance chance(7);
    const SimulatedClock reference({}, 1'000'000'000, 1);
    const SimulatedClock other({.offset = 12'300'000'000, .drift_ppm = drift}, 1'000'000'000, 2);
    std::int64_t truth = 1'000'000;
    std::int64_t exchanges = 0;
    const auto result =
        simulated_comparison(reference, other, {.latency_ns = 200, .jitter_ns = 50}, chance, truth, exchanges);
    REQUIRE(result);
    CHECK(std::abs(result->offset.offset - (result->at - other.at(result->at))) < 15);
  }
}

TEST_CASE("A clock that is stepped while it is compared is found where it is in the end") {
  ClockSetup setup;
  setup.steps = {{300'000, 5'000'000}};
  const SimulatedClock reference({}, 1'000'000'000, 1);
  const SimulatedClock other(setup, 1'000'000'000, 2);
  Chance chance(3);
  std::int64_t truth = 0;
  std::int64_t exchanges = 0;
  const auto result = simulated_comparison(reference, other, {}, chance, truth, exchanges);
  REQUIRE(result);
  CHECK(std::abs(result->offset.offset + 5'000'000) < 100);
}

TEST_CASE("A clock that is stepped all the time cannot be compared") {
  ClockSetup setup;
  for (int i = 1; i < 1000; ++i) {
    setup.steps.push_back({i * 20'000, 100'000});
  }
  const SimulatedClock reference({}, 1'000'000'000, 1);
  const SimulatedClock other(setup, 1'000'000'000, 2);
  Chance chance(3);
  std::int64_t truth = 0;
  std::int64_t exchanges = 0;
  CHECK_FALSE(simulated_comparison(reference, other, {}, chance, truth, exchanges));
}

TEST_CASE("Offsets of a chain add with their bounds") {
  const Offset sum = Offset{10, 5, 20} + Offset{-3, -4, -1};
  CHECK(sum.offset == 7);
  CHECK(sum.low == 1);
  CHECK(sum.high == 19);
}
