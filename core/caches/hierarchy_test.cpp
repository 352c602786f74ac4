#include "caches/hierarchy.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace elbowroom;

namespace {

// Two sets of two ways for each core, and a shared level of three sets of two ways.
HierarchyShape private_and_shared() {
  return shape_of({{{1, 0, 256, 2, 64}, {2, 0, 384, 2, 64}}, {{1, 1, 256, 2, 64}, {2, 0, 384, 2, 64}}});
}

std::uint64_t misses_of(Hierarchy& caches, std::size_t core, std::uint64_t line, bool write = false) {
  caches.reset_counts();
  caches.access(core, line * 64, 1, write);
  return caches.misses(core, 0);
}

}  // namespace

TEST_CASE("the least recently used line of a set is replaced") {
  Hierarchy caches(private_and_shared());
  CHECK(misses_of(caches, 0, 0) == 1);
  CHECK(misses_of(caches, 0, 2) == 1);
  CHECK(misses_of(caches, 0, 0) == 0);
  CHECK(misses_of(caches, 0, 4) == 1);  // replaces 2
  CHECK(misses_of(caches, 0, 0) == 0);
  CHECK(misses_of(caches, 0, 2) == 1);
}

TEST_CASE("lines of another set replace nothing") {
  Hierarchy caches(private_and_shared());
  misses_of(caches, 0, 0);
  for (const std::uint64_t line : {1, 3, 5, 7}) {
    misses_of(caches, 0, line);
  }
  CHECK(misses_of(caches, 0, 0) == 0);
}

TEST_CASE("a line that another core wrote misses in the private level and hits in the shared one") {
  Hierarchy caches(private_and_shared());
  misses_of(caches, 1, 0);
  misses_of(caches, 0, 0, true);
  CHECK(misses_of(caches, 1, 0) == 1);
  CHECK(caches.misses(1, 1) == 0);
  misses_of(caches, 0, 0);
  CHECK(misses_of(caches, 1, 0) == 0);
}

TEST_CASE("sets need not be a power of two") {
  Hierarchy caches(private_and_shared());
  for (const std::uint64_t line : {0, 3, 6}) {  // one set of the shared level, two ways
    caches.access(0, line * 64, 1, false);
    caches.access(1, line * 64, 1, false);
  }
  caches.reset_counts();
  caches.access(0, 0, 1, false);
  CHECK(caches.misses(0, 1) == (caches.misses(0, 0) == 0 ? 0 : 1));
}

TEST_CASE("bytes across the end of a line are two lines") {
  CHECK(lines_of(60, 8, 64).count == 2);
  CHECK(lines_of(64, 64, 64).count == 1);
  CHECK(lines_of(64, 0, 64).count == 0);
  CHECK(lines_of(130, 1, 64).first == 2);
}

TEST_CASE("unknown and full associativity become ways, the unknown with a word") {
  const auto shape = shape_of({{{1, 0, 32768, 0, 64}, {2, 0, 65536, -1, 64}, {3, 0, 1000000, 16, 128}}});
  CHECK(shape.caches[0].ways == 8);
  CHECK(shape.caches[0].sets == 64);
  CHECK(shape.caches[1].sets == 1);
  CHECK(shape.caches[1].ways == 1024);
  REQUIRE(shape.assumptions.size() == 3);
  CHECK(shape.assumptions[0] == "L1 0: 8 ways, since hwloc knows no associativity");
  CHECK(shape.assumptions[1] == "L3 0: 976 sets of 16 ways, since 1000000 B are not whole sets");
  CHECK(shape.assumptions[2] == "L3 0: lines of 64 B as the nearest cache has, not 128 B");
}

TEST_CASE("260 MiB of 20 ways are 212992 sets, none assumed") {
  const auto shape = shape_of({{{3, 0, 272629760, 20, 64}}});
  CHECK(shape.caches[0].sets == 212992);
  CHECK(shape.assumptions.empty());
}

TEST_CASE("a core without caches is refused") { CHECK_THROWS_AS(shape_of({{}}), std::invalid_argument); }
