#include "correction.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "simulated.hpp"

using namespace elbowroom::clock;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

SyncPoint point(std::int64_t local, std::int64_t offset, std::int64_t half = 10) {
  return {local, {offset, offset - half, offset + half}};
}

// 95 % of the errors of corrected times, at moments spread over the duration, are below what is returned.
struct Judged {
  std::int64_t p95;
  double inside;  // share of the moments where the error is inside the bar
};

Judged judge(const Correction& correction, const SimulatedClock& reference, const SimulatedClock& other,
             std::int64_t duration) {
  std::vector<std::int64_t> errors;
  int inside = 0;
  constexpr int kMoments = 20'000;
  for (int i = 0; i < kMoments; ++i) {
    const std::int64_t truth = duration / kMoments * i;
    const Corrected result = correction.at(other.at(truth));
    const std::int64_t error = std::abs(result.time - reference.at(truth));
    inside += error <= result.error + 1 ? 1 : 0;
    errors.push_back(error);
  }
  std::sort(errors.begin(), errors.end());
  return {errors[kMoments * 95 / 100], static_cast<double>(inside) / kMoments};
}

std::vector<SyncPoint> compared(const SimulatedClock& reference, const SimulatedClock& other, const LinkSetup& link,
                                std::int64_t duration, std::int64_t interval, Chance& chance, double bad = 0) {
  std::vector<SyncPoint> points;
  for (std::int64_t at = 0; at <= duration; at += interval) {
    std::int64_t truth = at;
    std::int64_t exchanges = 0;
    auto result = simulated_comparison(reference, other, link, chance, truth, exchanges);
    REQUIRE(result);
    const std::int64_t local = result->at - result->offset.offset;
    if (chance.even() < bad) {
      // Told wrong, and its bounds with it: a process that was moved, or a clock that was read in the wrong place.
      const auto wrong = static_cast<std::int64_t>((chance.even() - 0.5) * 200'000);
      result->offset = result->offset + Offset{wrong, wrong, wrong};
    }
    points.push_back({local, result->offset});
  }
  return points;
}

const ClockSetup kHourClock{.offset = -7 * kSecond,
                            .drift_ppm = 12,
                            .wave_ppm = 0.08,
                            .wave_s = 1200,
                            .wave_phase = 0.7,
                            .walk_ppm = 0.001,
                            .steps = {}};

}  // namespace

TEST_CASE("Without points times stay as they are, and it is said") {
  const Correction none;
  CHECK(none.flags().none);
  CHECK(none.at(5).time == 5);
}

TEST_CASE("One point gives an offset, a flag, and an error that grows by 200 ppm") {
  const Correction one({point(kSecond, 500)});
  CHECK(one.flags().single);
  CHECK(one.at(kSecond).time == kSecond + 500);
  CHECK(one.at(3 * kSecond).time == 3 * kSecond + 500);
  CHECK(one.at(kSecond).error == 10);
  CHECK(one.at(3 * kSecond).error == 10 + 400'000);
}

TEST_CASE("Between two points the offset is on the line, outside it is the nearest one's") {
  const Correction two({point(0, 0), point(10 * kSecond, 1000)});
  CHECK(two.at(5 * kSecond).time == 5 * kSecond + 500);
  CHECK(two.at(-kSecond).time == -kSecond);
  CHECK(two.at(20 * kSecond).time == 20 * kSecond + 1000);
  CHECK(two.at(20 * kSecond).error > two.at(11 * kSecond).error);
}

TEST_CASE("Times of a year and offsets of a century neither overflow nor lose a ns") {
  constexpr std::int64_t kYear = 365LL * 86400 * kSecond;
  const Correction two({point(90 * kYear, -90 * kYear), point(91 * kYear, -90 * kYear + 1'000'003)});
  CHECK(two.at(91 * kYear).time == kYear + 1'000'003);
  CHECK(two.at(90 * kYear + kYear / 2).time == kYear / 2 + 500'002);
}

TEST_CASE("Corrected times rise with local ones") {
  Chance chance(3);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<SyncPoint> points;
    for (int i = 0; i < 12; ++i) {
      points.push_back(point(i * kSecond + static_cast<std::int64_t>(chance.even() * 1e8),
                             static_cast<std::int64_t>(chance.normal() * 3e8), 100));
    }
    const Correction correction(points);
    std::int64_t before = correction.at(-kSecond).time;
    for (std::int64_t local = -kSecond; local < 13 * kSecond; local += kSecond / 7) {
      const std::int64_t now = correction.at(local).time;
      CHECK(now >= before);
      before = now;
    }
  }
}

TEST_CASE("A clock that goes back between two points is flagged, never followed") {
  const Correction correction({point(0, 0), point(kSecond, -2 * kSecond), point(2 * kSecond, 0)});
  CHECK(correction.flags().backwards);
  CHECK(correction.at(kSecond).time > correction.at(0).time);
}

TEST_CASE("The order in which points are given does not matter") {
  const std::vector<SyncPoint> points = {point(0, 0), point(kSecond, 40), point(2 * kSecond, 90),
                                         point(3 * kSecond, 130)};
  std::vector<SyncPoint> turned(points.rbegin(), points.rend());
  for (std::int64_t local = 0; local < 3 * kSecond; local += kSecond / 3) {
    CHECK(Correction(points).at(local).time == Correction(turned).at(local).time);
  }
}

TEST_CASE("A point far from the line of its neighbours is left out and counted") {
  std::vector<SyncPoint> points;
  for (int i = 0; i < 9; ++i) {
    points.push_back(point(i * kSecond, i * 100 + (i == 4 ? 50'000 : 0)));
  }
  const Correction correction(points);
  CHECK(correction.flags().rejected == 1);
  CHECK(correction.at(4 * kSecond).time == 4 * kSecond + 400);
  CHECK(correction.at(4 * kSecond).error >= 50'000);  // it may have been there
}

TEST_CASE("Points on a steady line are all kept, whatever their bounds") {
  Chance chance(5);
  std::vector<SyncPoint> points;
  for (int i = 0; i < 50; ++i) {
    points.push_back(point(i * kSecond, i * 1234 + static_cast<std::int64_t>(chance.even() * 20 - 10), 15));
  }
  CHECK(without_outliers(points).size() == points.size());
}

TEST_CASE("An hour with a point every 10 s is right to half a microsecond, its errors inside the bars") {
  const SimulatedClock reference({}, 3600 * kSecond, 1);
  const SimulatedClock other(kHourClock, 3600 * kSecond, 2);
  Chance chance(9);
  const LinkSetup link{.latency_ns = 1500, .jitter_ns = 200, .loss = 0.01, .preempted = 0.01};
  const Correction correction(compared(reference, other, link, 3600 * kSecond, 10 * kSecond, chance));
  const Judged judged = judge(correction, reference, other, 3600 * kSecond);
  CHECK(judged.p95 < 500);
  CHECK(judged.inside == 1);
}

TEST_CASE("With one point in twenty told wrong the hour is right to a microsecond") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const SimulatedClock reference({}, 3600 * kSecond, seed);
    const SimulatedClock other(kHourClock, 3600 * kSecond, seed + 100);
    Chance chance(seed);
    const LinkSetup link{.latency_ns = 1500, .jitter_ns = 200};
    const Correction correction(compared(reference, other, link, 3600 * kSecond, 10 * kSecond, chance, 0.05));
    CAPTURE(seed);
    CHECK(correction.flags().rejected > 5);
    CHECK(judge(correction, reference, other, 3600 * kSecond).p95 < 1000);
  }
}

TEST_CASE("Two points are worse than many: drift is not a line for ten minutes") {
  const SimulatedClock reference({}, 600 * kSecond, 1);
  const SimulatedClock other(kHourClock, 600 * kSecond, 2);
  Chance chance(4);
  const LinkSetup link{.latency_ns = 1500, .jitter_ns = 200};
  const Correction two(compared(reference, other, link, 600 * kSecond, 600 * kSecond, chance));
  const Correction many(compared(reference, other, link, 600 * kSecond, 10 * kSecond, chance));
  CHECK(judge(two, reference, other, 600 * kSecond).p95 > 5 * judge(many, reference, other, 600 * kSecond).p95);
}

TEST_CASE("A clock that jumps between two points keeps them all; the stretch is flagged, and its bar spans the jump") {
  std::vector<SyncPoint> points;
  for (int i = 0; i < 60; ++i) {
    points.push_back(point(i * kSecond, i * 100 + (i >= 6 ? 50'000 : 0)));
  }
  const Correction correction(points);
  CHECK(correction.flags().rejected == 0);
  CHECK(correction.flags().steps == 1);
  CHECK(correction.flags().unlocated == 0);
  CHECK(correction.segments()[5].stepped);
  CHECK(correction.at(5 * kSecond + kSecond / 100).error >= 50'000);
  CHECK(correction.at(3 * kSecond).error < 100);
  // What comes after goes on at the rate before, not at the jump's.
  CHECK(std::abs(correction.ahead(60 * kSecond).time - (60 * kSecond + 6000 + 50'000)) < 20);
}

TEST_CASE("A clock that jumps in one stretch of a dozen may jump forth and back in another: all bars span the jump") {
  std::vector<SyncPoint> points;
  for (int i = 0; i < 12; ++i) {
    points.push_back(point(i * kSecond, i * 100 + (i >= 6 ? 50'000 : 0)));
  }
  const Correction correction(points);
  CHECK(correction.flags().unlocated >= 50'000);
  CHECK(correction.at(3 * kSecond).error >= 50'000);
  CHECK(correction.ahead(12 * kSecond).error >= 50'000);
}

TEST_CASE("A jump is seen between two or three points, too, where no clock's rate explains it") {
  const Correction two({point(0, 0), point(kSecond / 100, 70'000)});
  CHECK(two.flags().steps == 1);
  CHECK(two.at(-kSecond).error >= 70'000);
  const Correction three({point(0, 0), point(kSecond / 100, 70'000), point(kSecond / 50, 70'000)});
  CHECK(three.flags().steps >= 1);
  CHECK(three.at(kSecond / 1000).error >= 70'000);
}

TEST_CASE("A point during whose comparison the clock jumped shows a jump that no point before or after shows") {
  std::vector<SyncPoint> points;
  for (int i = 0; i < 12; ++i) {
    points.push_back(point(i * kSecond, i * 100));
  }
  points[5].offset.low -= 50'000;
  points[5].offset.jumped = true;
  const Correction correction(points);
  CHECK(correction.flags().jumped == 1);
  CHECK(correction.flags().steps == 0);
  CHECK(correction.at(9 * kSecond).error >= 50'000);
}

TEST_CASE("Where a clock jumps, times are right but between the jump and the middle of the stretch, and always rise") {
  // 20 ppm, a point each 10 ms with bounds of +-100 ns; the clock jumps by 70 us at 54 ms, or back.
  for (const std::int64_t jump : {70'000, -70'000}) {
    const auto offset = [&](std::int64_t local) { return -local / 50'000 + (local >= 54'000'000 ? jump : 0); };
    std::vector<SyncPoint> points;
    for (std::int64_t local = 0; local <= 100'000'000; local += 10'000'000) {
      points.push_back({local, {offset(local), offset(local) - 100, offset(local) + 100}});
    }
    const Correction correction(points);
    CHECK(correction.flags().steps == 1);
    int wrong = 0;
    std::int64_t last = -1;
    for (std::int64_t local = 50'000'000; local <= 60'000'000; local += 1'000) {
      const Corrected result = correction.at(local);
      const std::int64_t error = std::abs(result.time - local - offset(local));
      CHECK(error <= result.error);
      CHECK(result.time > last);
      last = result.time;
      wrong += error > 1'000 ? 1 : 0;
    }
    CHECK(wrong > 900);  // from the jump to the middle: 1 ms of the stretch's 10
    CHECK(wrong < 1'200);
  }
}

TEST_CASE("A jump before the last point, or a last point that was told wrong: either way the bar says so") {
  std::vector<SyncPoint> points;
  for (int i = 0; i < 8; ++i) {
    points.push_back(point(i * kSecond, i * 100 + (i == 7 ? 9000 : 0)));
  }
  const Correction correction(points);
  CHECK(correction.flags().steps == 1);
  CHECK(correction.at(6 * kSecond + kSecond / 2).error >= 9000);
  CHECK(correction.at(8 * kSecond).error >= 9000);
}

TEST_CASE("A clock that goes on at another rate has neither jumps nor wrong points; bars hold what is between") {
  std::vector<SyncPoint> points;
  for (int i = 0; i < 12; ++i) {
    points.push_back(point(i * kSecond, i < 6 ? 0 : (2 * i - 11) * 5000));  // from 5.5 s on 10 us a second
  }
  const Correction correction(points);
  CHECK(correction.flags().rejected == 0);
  CHECK(correction.flags().steps == 0);
  CHECK(correction.at(5 * kSecond + kSecond / 2).error >= 2500);
}

TEST_CASE("The rate of late is that of the last stretch without a jump; none is known of one point") {
  CHECK(Correction({point(0, 5)}).gained(kSecond) == 0);
  const Correction correction({point(0, 0), point(kSecond, 7000)});
  CHECK(correction.gained(kSecond / 7) == 1000);
  CHECK(correction.segments().size() == 1);
  CHECK(correction.segments()[0].drift_ppb == doctest::Approx(7000));
}

TEST_CASE("Whatever points are given, times rise, and are integers at every ns around a point") {
  Chance chance(11);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<SyncPoint> points;
    std::int64_t local = static_cast<std::int64_t>(chance.normal() * 1e17);
    const auto count = 1 + chance.next() % 40;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto half = static_cast<std::int64_t>(chance.exponential(500)) + 1;
      points.push_back(
          point(local, static_cast<std::int64_t>(chance.normal() * std::pow(10, chance.even() * 17)), half));
      local += 1 + static_cast<std::int64_t>(chance.exponential(std::pow(10, 1 + chance.even() * 12)));
    }
    const Correction correction(points);
    for (const SyncPoint& one : points) {
      for (std::int64_t around = one.local - 2; around < one.local + 2; ++around) {
        CHECK(correction.at(around).time <= correction.at(around + 1).time);
        CHECK(correction.at(around).error >= 0);
      }
    }
  }
}
