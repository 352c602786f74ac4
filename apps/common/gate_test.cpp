#include "common/gate.hpp"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

namespace elbowroom::program {
namespace {

TEST_CASE("whoever waits goes on when all have come, asleep or not") {
  constexpr std::uint32_t kRounds = 200;
  for (const int spins : {0, 1000}) {
    Gate go;
    Gate done;
    std::vector<int> counts(3, 0);
    std::vector<std::thread> threads;
    for (int& own : counts) {
      threads.emplace_back([&] {
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
          go.wait_for(round, spins);
          ++own;
          done.raise();
        }
      });
    }
    for (std::uint32_t round = 1; round <= kRounds; ++round) {
      go.raise();
      done.wait_for(round * 3, spins);
      for (const int own : counts) {
        REQUIRE(own == static_cast<int>(round));
      }
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
}

}  // namespace
}  // namespace elbowroom::program
