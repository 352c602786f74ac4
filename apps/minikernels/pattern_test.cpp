#include "minikernels/pattern.hpp"

#include <doctest/doctest.h>

#include <set>
#include <vector>

using namespace elbowroom::minikernels;

TEST_CASE("A message holds its own pattern and no other message's") {
  std::vector<std::uint64_t> words(10);
  for (const Check check : {Check::ends, Check::all}) {
    fill(words, key_of(1, 2, 3), check);
    CHECK(holds(words, key_of(1, 2, 3), check));
    CHECK(!holds(words, key_of(2, 1, 3), check));
    CHECK(!holds(words, key_of(1, 2, 4), check));
  }
}

TEST_CASE("Any changed word is noticed where all are looked at, the first and the last one always") {
  for (std::size_t changed = 0; changed < 10; ++changed) {
    std::vector<std::uint64_t> words(10);
    fill(words, 7, Check::all);
    words[changed] ^= 1;
    CHECK(!holds(words, 7, Check::all));
    CHECK(holds(words, 7, Check::ends) == (changed != 0 && changed != 9));
  }
}

TEST_CASE("Messages of one word and of none have a pattern") {
  std::vector<std::uint64_t> one(1);
  fill(one, 7, Check::ends);
  CHECK(holds(one, 7, Check::all));
  CHECK(holds({}, 7, Check::all));
}

TEST_CASE("No two messages between eight ranks have the same key") {
  std::set<std::uint64_t> keys;
  for (int source = 0; source < 8; ++source) {
    for (int destination = 0; destination < 8; ++destination) {
      for (std::uint64_t number = 0; number < 100; ++number) {
        CHECK(keys.insert(key_of(source, destination, number)).second);
      }
    }
  }
}
