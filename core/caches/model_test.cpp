#include "caches/model.hpp"

#include <doctest/doctest.h>

#include <random>
#include <stdexcept>

using namespace elbowroom;

namespace {

constexpr std::uint64_t kKib = 1024;

// Two levels of private caches and one shared.
HierarchyShape three_levels() {
  std::vector<std::vector<CacheInfo>> cores;
  for (const int number : {0, 1, 2}) {
    cores.push_back({{1, number, 48 * kKib, 12, 64}, {2, number, 2048 * kKib, 16, 64}, {3, 0, 16384 * kKib, 16, 64}});
  }
  return shape_of(cores);
}

AccessPattern pattern_of(const Touching& touching) {
  return exchange_pattern(synthetic_memory(3, 400, std::uint64_t{1} << 30, {}), touching);
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::uint64_t from(std::uint64_t low, std::uint64_t high) { return low + engine_() % (high - low + 1); }
  bool coin() { return from(0, 1) == 1; }

 private:
  std::mt19937_64 engine_;
};

// A few sets and ways on each level; sets that divide those of the next level, or not; private or shared.
HierarchyShape small_hierarchy(Random& random, std::size_t cores) {
  HierarchyShape shape;
  shape.paths.resize(cores);
  std::uint64_t sets = 1;
  const std::uint64_t levels = random.from(1, 3);
  for (std::uint64_t level = 1; level <= levels; ++level) {
    const bool shared = level == levels ? random.from(0, 3) != 0 : random.from(0, 7) == 0;
    sets = random.coin() ? sets * random.from(1, 3) : random.from(1, 7);
    const std::uint64_t ways = random.from(1, 5);
    for (std::size_t core = 0; core < cores; ++core) {
      if (core == 0 || !shared) {
        shape.caches.push_back({static_cast<int>(level), static_cast<int>(core), 64 * sets * ways, ways, sets});
      }
      shape.paths[core].push_back(shape.caches.size() - 1);
    }
  }
  return shape;
}

void move(Random& random, std::vector<Region>& regions) {
  for (Region& region : regions) {
    region.address += random.from(0, 2000);
  }
}

ExchangeMemory small_memory(Random& random, std::size_t cores) {
  const Footprint footprint{random.from(0, 700), random.from(0, 700), random.from(0, 300), random.from(0, 300)};
  auto memory = synthetic_memory(cores, random.from(0, 400), 1 << 14, footprint);
  for (auto* region : {&memory.sent, &memory.received, &memory.cell}) {
    region->address += random.from(0, 2000);
  }
  for (auto* regions : {&memory.extraneous, &memory.sender_library, &memory.receiver_library}) {
    move(random, *regions);
  }
  return memory;
}

}  // namespace

TEST_CASE("the closed form counts what following every access counts, whatever the caches") {
  int touched = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    const std::size_t cores = random.from(2, 4);
    const auto shape = small_hierarchy(random, cores);
    const Touching touching{random.coin(), random.coin(), random.coin(), random.coin(), random.coin(), random.coin()};
    const auto pattern = exchange_pattern(small_memory(random, cores), touching);
    SteadyMisses model(shape, pattern);
    for (const std::uint64_t bytes : {std::uint64_t{0}, random.from(0, 600), random.from(0, 6000)}) {
      const auto modelled = model.at(bytes);
      const auto simulated = simulated_misses(shape, pattern, bytes, 8);
      CAPTURE(seed);
      CAPTURE(bytes);
      REQUIRE(modelled.sender == simulated.sender);
      REQUIRE(modelled.receiver == simulated.receiver);
      touched += modelled.receiver.front() > 0 ? 1 : 0;
    }
  }
  CHECK(touched > 1000);
}

TEST_CASE("misses of the side that touches memory rise past L1, then L2, then L3, and come to a plateau") {
  Touching touching;
  touching.receiver = true;
  SteadyMisses model(three_levels(), pattern_of(touching));
  const auto before = model.at(0);
  const auto past_l1 = model.at(128 * kKib);
  const auto past_l2 = model.at(4096 * kKib);
  const auto past_l3 = model.at(65536 * kKib);
  CHECK(past_l1.receiver[0] > before.receiver[0]);
  CHECK(past_l1.receiver[1] == before.receiver[1]);
  CHECK(past_l2.receiver[0] == past_l1.receiver[0]);
  CHECK(past_l2.receiver[1] == past_l2.receiver[0]);
  CHECK(past_l2.receiver[2] == before.receiver[2]);
  CHECK(past_l3.receiver[2] > past_l2.receiver[2]);
  CHECK(past_l3.sender[0] == before.sender[0]);
}

TEST_CASE("without accesses only the lines that the sender wrote miss, at the receiver, and the last level has them") {
  const auto misses = SteadyMisses(three_levels(), pattern_of({})).at(0);
  CHECK(misses.sender == std::vector<std::uint64_t>{0, 0, 0});
  CHECK(misses.receiver == std::vector<std::uint64_t>{8, 8, 0});  // 400 B and a header
}

TEST_CASE("bystanders cost misses of the shared level only") {
  Touching touching;
  touching.bystanders = true;
  SteadyMisses model(three_levels(), pattern_of(touching));
  const auto misses = model.at(65536 * kKib);
  CHECK(misses.receiver == std::vector<std::uint64_t>{8, 8, 8});
  CHECK(misses.sender == std::vector<std::uint64_t>{0, 0, 0});
}

TEST_CASE("what the barrier touched before does not miss in the message") {
  Touching touching;
  touching.sender = true;
  const auto plain = SteadyMisses(three_levels(), pattern_of(touching)).at(4096 * kKib);
  touching.barrier = true;
  const auto warmed = SteadyMisses(three_levels(), pattern_of(touching)).at(4096 * kKib);
  CHECK(plain.sender[0] - warmed.sender[0] == Footprint{}.sender_in_barrier / 64);
}

TEST_CASE("a buffer written anew before the accesses changes nothing but the number of its own misses") {
  Touching touching;
  touching.fresh = true;
  const auto misses = SteadyMisses(three_levels(), pattern_of(touching)).at(0);
  CHECK(misses.receiver == std::vector<std::uint64_t>{8, 8, 0});
}

TEST_CASE("accesses to memory of the message, or of each other, are refused") {
  auto memory = synthetic_memory(2, 400, 4096, {});
  memory.extraneous[0] = memory.sent;
  Touching touching;
  touching.sender = true;
  CHECK_THROWS_AS(SteadyMisses(three_levels(), exchange_pattern(memory, touching)), std::invalid_argument);
  memory.extraneous[0] = memory.extraneous[1];
  touching.receiver = true;
  CHECK_THROWS_AS(SteadyMisses(three_levels(), exchange_pattern(memory, touching)), std::invalid_argument);
}

TEST_CASE("more accesses than the array has are refused") {
  Touching touching;
  touching.sender = true;
  SteadyMisses model(three_levels(), exchange_pattern(synthetic_memory(3, 400, 4096, {}), touching));
  CHECK_THROWS_WITH_AS(model.at(4097), "4097 B of extraneous accesses in an array of 4096 B", std::invalid_argument);
}
