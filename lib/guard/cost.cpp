// guard_cost [MESSAGES]: ns that a message costs its rank, and that a read of the board costs, as JSON. One rank publishes
// alone; then while another thread reads all the time, with 1 and with 64 ranks on the board.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "elbowroom/guard.h"
#include "guard/publishing.hpp"

namespace {

using elbowroom::guard::Board;
using elbowroom::guard::Place;

constexpr int kRounds = 9;

// Of one call, the best of some rounds: others interrupt.
template <typename Work>
double ns_of(std::uint64_t times, Work work) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t begin = elbow_guard_now();
    for (std::uint64_t i = 0; i < times; ++i) {
      work();
    }
    best = std::min(best, static_cast<double>(elbow_guard_now() - begin) / static_cast<double>(times));
  }
  return best;
}

double message(Place& place, std::uint64_t times, bool threads) {
  return ns_of(times, [&] {
    elbowroom::guard::begin(place, ELBOW_GUARD_OUT, 4096, threads);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // a message lies between
    elbowroom::guard::end(place, ELBOW_GUARD_OUT, 4096, threads);
  });
}

double read(const elbow_guard* guard, std::uint64_t times) {
  std::uint64_t sum = 0;
  const double ns = ns_of(times, [&] { sum += elbow_guard_in_flight(guard); });
  return sum == 1 ? 0 : ns;
}

}  // namespace

int main(int count, char** words) {
  const std::uint64_t times = count > 1 ? std::strtoull(words[1], nullptr, 10) : 10'000'000;
  const std::string path = "/dev/shm/elbow-guard-cost-" + std::to_string(getpid());
  elbow_guard* const guard = elbow_guard_make(path.c_str(), 0);
  if (guard == nullptr) {
    std::fprintf(stderr, "guard_cost: %s\n", elbow_guard_error());
    return 1;
  }
  const Board board(path, 0);
  unlink(path.c_str());
  Place& place = *board.take(0);
  const double alone = message(place, times, false);
  const double locked = message(place, times, true);
  const double one = read(guard, times);
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      elbow_guard_in_flight(guard);
    }
  });
  const double watched = message(place, times, false);
  stop = true;
  reader.join();
  for (int rank = 1; rank < 64; ++rank) {
    board.take(rank);
  }
  const double many = read(guard, times / 16);
  std::printf(
      "{\"message_ns\": %.2f, \"message_of_threads_ns\": %.2f, \"message_while_read_ns\": %.2f, \"read_ns\": %.2f, "
      "\"read_64_ranks_ns\": %.2f}\n",
      alone, locked, watched, one, many);
  elbow_guard_close(guard);
  return 0;
}
