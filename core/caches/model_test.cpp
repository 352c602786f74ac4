#include "caches/model.hpp"

#include <doctest/doctest.h>

#include <random>
#include <stdexcept>

using namespace elbowroom;

namespace {

constexpr std::uint64_t kib = 1024;

// Two levels of private caches and one shared: 48 KiB, 2 MiB, 16 MiB.
HierarchyShape three_levels(std::size_t cores) {
  std::vector<std::vector<CacheInfo>> found;
  for (std::size_t core = 0; core < cores; ++core) {
    const int number = static_cast<int>(core);
    found.push_back({{1, number, 48 * kib, 12, 64}, {2, number, 2048 * kib, 16, 64}, {3, 0, 16384 * kib, 16, 64}});
  }
  return shape_of(found);
}

AccessPattern pattern_of(const Touching& touching, std::size_t cores = 2, std::uint64_t message = 400) {
  return exchange_pattern(made_up_memory(cores, message, 1 << 30, default_footprint), touching);
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

ExchangeMemory small_memory(Random& random, std::size_t cores) {
  auto memory = made_up_memory(cores, random.from(0, 400), 1 << 14, random.from(0, 700));
  for (auto* region :
       {&memory.sent, &memory.received, &memory.cell, &memory.sender_library, &memory.receiver_library}) {
    region->address += random.from(0, 2000);
  }
  for (auto& region : memory.extraneous) {
    region.address += random.from(0, 2000);
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
    const Touching touching{random.coin(), random.coin(), random.coin(), random.coin(), random.coin()};
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
