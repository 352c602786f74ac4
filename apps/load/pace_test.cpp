#include "pace.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <limits>

using elbowroom::load::Pace;

namespace {

constexpr std::uint64_t kChunk = 1000;

// Bytes that a load moves from 0 to `end` ns, if each chunk takes `chunk_ns`.
std::uint64_t moved(Pace& pace, std::int64_t end, std::int64_t chunk_ns) {
  std::uint64_t bytes = 0;
  for (std::int64_t now = 0; now < end;) {
    now = pace.due_ns(now);
    pace.moved(kChunk);
    bytes += kChunk;
    now += chunk_ns;
  }
  return bytes;
}

}  // namespace

TEST_CASE("a load moves the bytes per second that are asked for") {
  Pace pace(1e8, 0);  // a chunk each 10 us
  CHECK(moved(pace, 1'000'000'000, 1'000) == doctest::Approx(1e8).epsilon(0.001));
}

TEST_CASE("a load that cannot move so many bytes moves what it can") {
  Pace pace(1e9, 0);  // a chunk each us, which takes 4
  CHECK(moved(pace, 1'000'000'000, 4'000) == doctest::Approx(2.5e8).epsilon(0.001));
}

TEST_CASE("an unpaced load never waits") {
  Pace pace(std::numeric_limits<double>::infinity(), 0);
  for (const std::int64_t now : {0, 5, 70}) {
    pace.moved(kChunk);
    CHECK(pace.due_ns(now) == now);
  }
}

TEST_CASE("a short delay is made good") {
  Pace pace(1e8, 0);
  CHECK(pace.due_ns(50'000) == 50'000);
  for (int i = 0; i < 5; ++i) {
    pace.moved(kChunk);
    CHECK(pace.due_ns(50'000) == 50'000);
  }
  pace.moved(kChunk);
  CHECK(pace.due_ns(50'000) == 60'000);
}

TEST_CASE("after a long delay no burst follows") {
  Pace pace(1e8, 0);
  const std::int64_t late = 1'000'000'000;
  int burst = 0;
  while (pace.due_ns(late) == late) {
    pace.moved(kChunk);
    ++burst;
  }
  CHECK(burst <= Pace::kDebtNs / 10'000 + 1);
}
