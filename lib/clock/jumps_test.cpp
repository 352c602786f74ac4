// Clocks that jump at any time, compared over links so slow that they jump during comparisons, too.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <vector>

#include "correction.hpp"
#include "simulated.hpp"

using namespace elbowroom::clock;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

double between(Chance& chance, double low, double high) { return low + (high - low) * chance.even(); }

// Orders of magnitude are equally likely.
double scale(Chance& chance, double low, double high) { return low * std::pow(high / low, chance.even()); }

double jump_size(Chance& chance) { return scale(chance, 1e3, 1e6) * (chance.even() < 0.5 ? -1 : 1); }

// Forth and back at a fixed period, or at random; pairs that soon cancel each other; sizes at random; once forth and back.
enum class Jumps { periodic, random, pairs, sizes, two, count };

std::vector<Step> jumps_of(Jumps kind, std::int64_t end, Chance& chance) {
  std::vector<Step> jumps;
  const double size = jump_size(chance);
  const double period = scale(chance, 0.1e9, 3e9);
  const std::size_t most = kind == Jumps::two ? 2 : 1'000'000;
  for (double at = chance.even() * period; at < static_cast<double>(end) && jumps.size() < most;) {
    const bool forth = jumps.size() % 2 == 0;
    const double by = kind == Jumps::sizes ? jump_size(chance) : forth ? size : -size;
    jumps.push_back({std::llround(at), std::llround(by)});
    if (kind == Jumps::periodic) {
      at += period;
    } else {
      at += kind == Jumps::pairs && forth ? scale(chance, 1e3, 0.5e9) : chance.exponential(period);
    }
  }
  return jumps;
}

// Comparisons take 1 to 500 ms.
LinkSetup slow_link(Chance& chance) {
  LinkSetup link;
  link.latency_ns = scale(chance, 1e3, 400e3);
  link.jitter_ns = link.latency_ns * between(chance, 0.05, 1);
  link.heavy = chance.even() < 0.5;
  link.asymmetry = between(chance, -0.5, 0.5);
  link.preempted = between(chance, 0, 0.05);
  return link;
}

struct Span {
  std::int64_t begin;
  std::int64_t end;
};

// A clock that jumps, compared now and then until it cannot be.
struct Watched {
  ClockSetup setup;
  LinkSetup link;
  std::vector<SyncPoint> points;
  std::vector<std::vector<Span>> exchanges;  // of each side of each comparison, in true time
  bool comparable = true;

  // As one side compares the clocks.
  std::optional<Compared> compare(const SimulatedClock& asker, const SimulatedClock& answerer, const LinkSetup& way,
                                  Chance& chance, std::int64_t& truth) {
    exchanges.emplace_back();
    return compared([&] {
      const std::int64_t begin = truth;
      const Exchange exchange = simulated_exchange(asker, answerer, way, chance, truth);
      exchanges.back().push_back({begin, truth});
      return exchange;
    });
  }

  // Between which jumps a moment is.
  Span stay(std::int64_t moment) const {
    Span stay{0, 1LL << 60};
    for (const Step& jump : setup.steps) {
      if (jump.at > moment) {
        stay.end = jump.at;
        break;
      }
      stay.begin = jump.at;
    }
    return stay;
  }

  // Whether a comparison saw the clock between those jumps: a few exchanges show a jump that is longer than they take, only
  // whole pieces of 32 any other.
  bool saw(const Span& stay) const {
    const bool longer = std::abs(setup.steps.front().by) > std::llround(4 * link.latency_ns);
    const std::ptrdiff_t least = longer ? 20 : 100;
    return std::any_of(exchanges.begin(), exchanges.end(), [&](const std::vector<Span>& side) {
      return std::count_if(side.begin(), side.end(), [&](const Span& exchange) {
               return exchange.begin >= stay.begin && exchange.end < stay.end;
             }) >= least;
    });
  }
};

const ClockSetup kReference{.drift_ppm = 30};

Watched watch(Jumps kind, Chance& chance) {
  constexpr std::int64_t kEnd = 60 * kSecond;
  Watched watched;
  watched.setup = {
      .offset = 7 * kSecond, .drift_ppm = between(chance, -100, 100), .steps = jumps_of(kind, kEnd, chance)};
  watched.link = slow_link(chance);
  const SimulatedClock reference(kReference, kEnd, 1);
  const SimulatedClock other(watched.setup, kEnd, 2);
  const double pause = scale(chance, 1e6, 1e9);
  const auto count = 6 + chance.next() % 28;
  std::int64_t truth = kSecond / 10;
  while (watched.points.size() < count) {
    const auto first = watched.compare(reference, other, watched.link, chance, truth);
    LinkSetup back = watched.link;
    back.asymmetry = -back.asymmetry;
    const auto second = watched.compare(other, reference, back, chance, truth);
    if (!first || !second) {
      watched.comparable = false;
      break;
    }
    const Compared result = both(*first, *second);
    watched.points.push_back({result.at - result.offset.offset, result.offset});
    truth += std::llround(chance.exponential(pause));
  }
  return watched;
}

struct Outside {
  int seen = 0;    // moments outside their bounds, between jumps where a comparison saw the clock
  int unseen = 0;  // and where none did
};

Outside outside(const Watched& watched, const Correction& correction) {
  constexpr int kMoments = 500;
  const SimulatedClock reference(kReference, 0, 1);
  const SimulatedClock other(watched.setup, 0, 2);
  const std::int64_t begin = watched.exchanges.front().front().begin;
  const std::int64_t whole = watched.exchanges.back().back().end - begin;
  Outside result;
  for (int i = 0; i <= kMoments; ++i) {
    const std::int64_t moment = begin + whole / kMoments * i;
    const Corrected corrected = correction.at(other.at(moment));
    if (std::abs(corrected.time - reference.at(moment)) > corrected.error + 2) {
      ++(watched.saw(watched.stay(moment)) ? result.seen : result.unseen);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("Whenever a clock jumps, bounds hold wherever a comparison saw it, and unlocated jumps are flagged") {
  const char* asked = std::getenv("ELBOWROOM_CLOCK_RUNS");
  const int runs = asked != nullptr ? std::atoi(asked) : 300;
  int inside = 0;
  int reported = 0;
  int without_a_trace = 0;
  int incomparable = 0;
  for (int seed = 1; seed <= runs; ++seed) {
    Chance chance(static_cast<std::uint64_t>(seed));
    const Watched watched = watch(static_cast<Jumps>(seed % static_cast<int>(Jumps::count)), chance);
    if (!watched.comparable) {
      ++incomparable;
      continue;
    }
    const Correction correction(watched.points);
    const Outside wrong = outside(watched, correction);
    const CorrectionFlags& flags = correction.flags();
    CAPTURE(seed);
    CHECK(wrong.seen == 0);
    const bool traces = flags.steps > 0 || flags.jumped > 0 || flags.rejected > 0;
    CHECK((wrong.unseen == 0 || !traces || flags.unlocated > 0));
    ++(wrong.unseen == 0 ? inside : traces ? reported : without_a_trace);
  }
  MESSAGE(inside << " runs inside their bounds, " << reported << " with a larger jump unseen than seen, flagged, "
                 << without_a_trace << " in which no exchange saw a jump, " << incomparable << " incomparable");
  CHECK(inside > runs * 9 / 10);
}

TEST_CASE("A comparison that a jump interrupts has bounds that cover both offsets, and says so") {
  const SimulatedClock reference({}, kSecond, 1);
  for (std::int64_t at = 100'000; at < 1'000'000; at += 50'000) {
    ClockSetup setup;
    setup.steps = {{at, 70'000}};
    const SimulatedClock other(setup, kSecond, 2);
    Chance chance(3);
    std::int64_t truth = 0;
    std::int64_t exchanges = 0;
    const auto result = simulated_comparison(reference, other, {}, chance, truth, exchanges);
    REQUIRE(result);
    CHECK(result->offset.jumped == (at < truth));
    CHECK((result->offset.low <= -70'000 || at > truth));
    CHECK(result->offset.high >= 0);
  }
}

TEST_CASE("A jump shorter than a round trip contradicts no exchange; the bounds cover both offsets all the same") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    // 150 us is longer than one way of 100 us and shorter than both.
    ClockSetup setup;
    setup.steps = {{20'000'000, 150'000}};
    const SimulatedClock reference({}, kSecond, 1);
    const SimulatedClock other(setup, kSecond, 2);
    Chance chance(seed);
    std::int64_t truth = 0;
    std::int64_t exchanges = 0;
    const auto result =
        simulated_comparison(reference, other, {.latency_ns = 100e3, .jitter_ns = 20e3}, chance, truth, exchanges);
    REQUIRE(result);
    CAPTURE(seed);
    CHECK(result->offset.low <= -150'000);
    CHECK(result->offset.high >= 0);
  }
}
