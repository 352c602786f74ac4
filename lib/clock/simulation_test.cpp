#include "simulation.hpp"

#include <doctest/doctest.h>

using namespace elbowroom::clock;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

const Judged& all_points(const Outcome& outcome) { return outcome.methods.back(); }

Plan hour(ClockKind clock, LinkKind link = LinkKind::symmetric, double bad = 0) {
  return {.clocks = 4,
          .duration = 3600 * kSecond,
          .clock = clock,
          .link = link,
          .bad = bad,
          .moments = 50'000,
          .messages = 20'000};
}

}  // namespace

TEST_CASE("An hour with a point every 10 s: 95 % of all times right to half a microsecond, all inside their bounds") {
  for (const ClockKind kind : {ClockKind::thermal, ClockKind::walk}) {
    const Outcome outcome = simulate(hour(kind));
    CHECK(outcome.comparisons == 361);
    CHECK(all_points(outcome).p95 < 500);
    CHECK(all_points(outcome).inside == 1);
    CHECK(all_points(outcome).tachyons == 0);
  }
}

TEST_CASE("With one point in twenty told wrong they are right to a microsecond") {
  const Outcome outcome = simulate(hour(ClockKind::thermal, LinkKind::symmetric, 0.05));
  CHECK(outcome.corrupted > 30);
  CHECK(static_cast<double>(outcome.rejected) > 0.9 * static_cast<double>(outcome.corrupted));
  CHECK(all_points(outcome).p95 < 1000);
  CHECK(all_points(outcome).inside == 1);
}

TEST_CASE("1024 clocks are compared in ten rounds, and all are right") {
  const Outcome outcome = simulate({.duration = 10 * kSecond, .moments = 50'000, .messages = 20'000});
  CHECK(outcome.rounds == 10);
  CHECK(outcome.points == 2 * 1023);
  CHECK(outcome.longest < 10 * 10'000'000);
  CHECK(all_points(outcome).p95 < 500);
  CHECK(all_points(outcome).inside == 1);
}

TEST_CASE("Clocks that differ by 100 ppm are right to a microsecond, and nothing is flagged") {
  const Outcome outcome = simulate(hour(ClockKind::affine));
  CHECK(all_points(outcome).p95 < 1000);
  CHECK(all_points(outcome).inside == 1);
  CHECK(outcome.steps == 0);
  CHECK(outcome.rejected == 0);
}

TEST_CASE("Clocks that jump are right to a microsecond; bounds span the jumps, or a flag says what they do not") {
  const Outcome outcome = simulate(hour(ClockKind::steps));
  CHECK(all_points(outcome).p95 < 1000);
  CHECK(outcome.steps > 10);
  // Jumps in two stretches in a row make a point look as if it were told wrong.
  CHECK(outcome.rejected < outcome.points / 100);
  CHECK(all_points(outcome).inside > 0.999);
  CHECK(all_points(outcome).unflagged == 0);
}

TEST_CASE("Bounds hold on every link, for every clock") {
  for (const LinkKind link : {LinkKind::asymmetric, LinkKind::lossy, LinkKind::heavy_tail, LinkKind::busy}) {
    for (const ClockKind clock : {ClockKind::mixed, ClockKind::slewing}) {
      Plan plan = hour(clock, link);
      plan.duration = 300 * kSecond;
      CAPTURE(static_cast<int>(link));
      CAPTURE(static_cast<int>(clock));
      const Judged judged = all_points(simulate(plan));
      CHECK(judged.inside > 0.999);
      CHECK(judged.unflagged == 0);
    }
  }
}

TEST_CASE("Every way to compare clocks is worse than all points: plain barriers, one point, two points") {
  Plan plan = hour(ClockKind::thermal);
  plan.duration = 600 * kSecond;
  const Outcome outcome = simulate(plan);
  REQUIRE(outcome.methods.size() == 4);
  CHECK(outcome.methods[0].tachyons > outcome.messages / 100);
  CHECK(outcome.methods[1].p95 > 100 * outcome.methods[3].p95);
  CHECK(outcome.methods[2].p95 > 5 * outcome.methods[3].p95);
}

TEST_CASE("The same seed gives the same outcome, another seed another") {
  Plan plan = hour(ClockKind::mixed);
  plan.duration = 60 * kSecond;
  const Outcome first = simulate(plan);
  const Outcome again = simulate(plan);
  plan.seed = 2;
  const Outcome other = simulate(plan);
  CHECK(first.exchanges == again.exchanges);
  CHECK(all_points(first).p95 == all_points(again).p95);
  CHECK(first.exchanges != other.exchanges);
}

TEST_CASE("One clock alone needs no round and no message") {
  const Outcome outcome = simulate({.clocks = 1, .duration = kSecond});
  CHECK(outcome.rounds == 0);
  CHECK(outcome.exchanges == 0);
  CHECK(outcome.messages == 0);
  CHECK(outcome.shown.empty());
}
