#include "cost.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "ways.hpp"

using namespace elbowroom::broadcast;

namespace {

const Network kNetwork{2e-6, 0, 6e9, 0};

double time_of(const char* tree, std::size_t size, std::size_t recipients, std::size_t segment = 0,
               const Network& network = kNetwork) {
  return cost(network, {}, parse_way(tree, segment), size, recipients).received;
}

constexpr std::size_t kSize = 429 << 10;
constexpr double kCopy = kSize / 6e9 + 4e-6;  // s

}  // namespace

TEST_CASE("A message to one recipient takes two links, two overheads and its bytes") {
  Network network = kNetwork;
  network.overhead = 0.5e-6;
  CHECK(time_of("flat", 4, 1, 0, network) == doctest::Approx(2 * 0.5e-6 + 4e-6 + 21 / 6e9));
  CHECK(time_of("flat", kSize, 1) == doctest::Approx(3 * 4e-6 + (kSize + 34) / 6e9).epsilon(1e-3));
}

TEST_CASE("A flat tree takes a copy for each recipient, and a binomial tree one for each round") {
  CHECK(time_of("flat", kSize, 38) == doctest::Approx(38 * kCopy).epsilon(0.02));
  CHECK(time_of("binomial", kSize, 38) == doctest::Approx(6 * kCopy).epsilon(0.03));
}

TEST_CASE("Segments through two trees take less than through one, and these less than the whole message") {
  CHECK(time_of("two", kSize, 38, 32768) < time_of("binary", kSize, 38, 32768));
  CHECK(time_of("binary", kSize, 38, 32768) < time_of("binary", kSize, 38) / 2);
}

TEST_CASE("Messages that share a link take as long as one after the other") {
  const double all = time_of("flat", 4000, 100);
  CHECK(all == doctest::Approx(4e-6 + 100 * 4017 / 6e9));
}

TEST_CASE("A pipeline that is extended from its first segments grows as one that is not") {
  constexpr std::size_t kSegment = 65536;
  for (const char* tree : {"chain", "binary", "two"}) {
    CAPTURE(tree);
    const double shorter = time_of(tree, 32 * kSegment, 20, kSegment);
    const double longer = time_of(tree, 48 * kSegment, 20, kSegment);  // the last that is evaluated
    const double extended = time_of(tree, 96 * kSegment, 20, kSegment);
    CHECK((extended - longer) / (longer - shorter) == doctest::Approx(3).epsilon(0.05));
  }
}

TEST_CASE("What takes longer than the limit is given up") {
  const double whole = time_of("flat", kSize, 38);
  const Way way = parse_way("flat", 0);
  CHECK(std::isinf(cost(kNetwork, {}, way, kSize, 38, whole / 2).received));
  CHECK(cost(kNetwork, {}, way, kSize, 38, whole * 2).received == whole);
}

TEST_CASE("The busiest recipient of a binary tree forwards two copies, and that of two trees one") {
  const auto forwarded = [](const char* tree, std::size_t segment) {
    return cost(kNetwork, {}, parse_way(tree, segment), 1 << 20, 38).forwarded;
  };
  CHECK(forwarded("flat", 0) == 0);
  CHECK(forwarded("chain", 65536) == 1 << 20);
  CHECK(forwarded("binary", 0) == 2 << 20);
  CHECK(forwarded("two", 65536) == 1 << 20);
}

TEST_CASE("The best way is no slower than a flat, a binary and a binomial tree") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 60; ++i) {
    const std::size_t size = std::size_t{4} << random() % 21;
    const std::size_t recipients = random() % 60 + 1;
    const Network network{1e-7 * static_cast<double>(random() % 100 + 1), 0,
                          1e9 * static_cast<double>(random() % 20 + 1), 0};
    const double best = cost(network, {}, best_way(network, {}, size, recipients), size, recipients).received;
    for (const char* tree : {"flat", "binary", "binomial"}) {
      CAPTURE(tree);
      CAPTURE(size);
      CAPTURE(recipients);
      CHECK(best <= time_of(tree, size, recipients, 0, network) * (1 + 1e-9));
    }
  }
}

TEST_CASE("The more forwarding costs, the less the busiest recipient forwards") {
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const double forwarding : {0.0, 1e-10, 1e-9, 1e-7}) {
    Network network = kNetwork;
    network.forwarding = forwarding;
    const std::uint64_t forwarded = cost(network, {}, best_way(network, {}, kSize, 38), kSize, 38).forwarded;
    CHECK(forwarded <= most);
    most = forwarded;
  }
  CHECK(most == 0);
}

TEST_CASE("Where racks are known, the best way has two levels") {
  Settings settings;
  for (std::uint16_t rank = 0; rank < 39; ++rank) settings.groups.push_back(rank % 4);
  const Way way = best_way(kNetwork, settings, kSize, 38);
  CHECK((way.two_trees || way.tree.two_level));
}

TEST_CASE("Sizes of one class go the same way, and those that travel with their announcement have no segments") {
  Chooser chooser(kNetwork, {});
  CHECK(&chooser.choose(100000, 38) == &chooser.choose(100001, 38));
  CHECK(&chooser.choose(100000, 38) != &chooser.choose(200000, 38));
  CHECK(&chooser.choose(100000, 14) != &chooser.choose(100000, 15));
  CHECK(&chooser.choose(100000, 1000) == &chooser.choose(100000, 1001));
  CHECK(chooser.choose(4096, 38).segment == 0);
  CHECK(chooser.choose(100000, 38, 5000).segment == 5000);
  CHECK(chooser.choose(4097, 1).segment == 0);
}

TEST_CASE("Ways are written as they are read") {
  for (const char* text : {"two", "binary", "split3-two-level-chain"}) CHECK(format_way(parse_way(text, 0)) == text);
}

TEST_CASE("No way is predicted to take less than one copy from the root") {
  const Network network{2e-6, 0.5e-6, 6e9, 0};
  for (const std::size_t segment : {8192U, 16384U, 65536U}) {
    for (const char* tree : {"two", "chain", "binary"}) {
      CHECK(time_of(tree, 32 << 20, 7, segment, network) > (32 << 20) / 6e9);
    }
  }
}
