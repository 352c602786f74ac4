#include "pmpi/counts.hpp"

#include <doctest/doctest.h>
#include <malloc.h>

#include <map>
#include <random>
#include <utility>

namespace elbowroom::pmpi {
namespace {

TEST_CASE("counts are those of a map, whatever the order and the distance of tags") {
  for (const int spread : {10, 5'000, 70'000, 2'000'000'000}) {
    std::mt19937 random(static_cast<unsigned>(spread));
    std::map<std::pair<int, int>, std::uint32_t> expected;
    Counts counts;
    for (int i = 0; i < 60'000; ++i) {
      const int peer = static_cast<int>(random() % 3);
      const int tag = static_cast<int>(random() % static_cast<unsigned>(spread));
      REQUIRE(counts.next(peer, tag) == ++expected[{peer, tag}]);
    }
    for (const auto& [key, count] : expected) {
      REQUIRE(counts.get(key.first, key.second) == count);
      REQUIRE(counts.get(key.first + 3, key.second) == 0);
    }
  }
}

TEST_CASE("counts above a byte are exact") {
  Counts counts;
  for (std::uint32_t i = 1; i <= 1000; ++i) {
    CHECK(counts.next(1, 5) == i);
  }
  CHECK(counts.get(1, 4) == 0);
  counts.set(1, 4, 70'000);
  CHECK(counts.next(1, 4) == 70'001);
}

// Of what the process has allocated.
std::size_t bytes_in_use() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

TEST_CASE("a million tags that are used once take some bytes each") {
  for (const unsigned step : {1U, 2'147'483'647U / 1'000'000U, 2'654'435'761U}) {
    const std::size_t before = bytes_in_use();
    Counts counts;
    for (std::uint32_t i = 0; i < 1'000'000; ++i) {
      counts.next(1, static_cast<int>(i * step & 0x7FFFFFFFU));
    }
    CHECK((bytes_in_use() - before) / 1'000'000.0 < 8);
  }
}

}  // namespace
}  // namespace elbowroom::pmpi
