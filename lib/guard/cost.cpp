// guard_cost [MESSAGES]: ns that a message costs its rank, and that reads of the board cost, as JSON. One rank publishes alone;
// then while another thread reads all the time; the pressure and the exact bytes are read with 1 and with 64 ranks on the board.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "elbowroom/guard.h"
#include "guard/publishing.hpp"

namespace {

constexpr std::uint64_t kSmall = 4096;
constexpr std::uint64_t kLarge = 1 << 20;

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

double message(const elbow_guard_rank& rank, std::uint64_t bytes, std::uint64_t times, bool threads) {
  return ns_of(times, [&] {
    elbowroom::guard::begin(rank, ELBOW_GUARD_OUT, bytes, threads);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // a message lies between
    elbowroom::guard::end(rank, ELBOW_GUARD_OUT, bytes, threads);
  });
}

double sum_of_reads = 0;  // is used, so that reads are not left out

template <typename Read>
double read(Read read, const elbow_guard* guard, std::uint64_t times) {
  return ns_of(times, [&] { sum_of_reads += static_cast<double>(read(guard)); });
}

// While another thread reads all the time.
double message_while_read(const elbow_guard* guard, const elbow_guard_rank& rank, std::uint64_t times) {
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      elbow_guard_pressure(guard);
    }
  });
  const double ns = message(rank, kLarge, times, false);
  stop = true;
  reader.join();
  return ns;
}

}  // namespace

int main(int count, char** words) {
  const std::uint64_t times = count > 1 ? std::strtoull(words[1], nullptr, 10) : 10'000'000;
  const std::string path = "/dev/shm/elbow-guard-cost-" + std::to_string(getpid());
  elbow_guard* const guard = elbow_guard_make(path.c_str(), 0);
  unlink(path.c_str());
  const elbow_guard_rank* const rank = elbow_guard_join(guard, 0, 0);
  if (rank == nullptr) {
    std::fprintf(stderr, "guard_cost: %s\n", elbow_guard_error());
    return 1;
  }
  const auto print = [](const char* name, double ns, const char* end = ", ") {
    std::printf("\"%s_ns\": %.2f%s", name, ns, end);
  };
  std::printf("{");
  print("message", message(*rank, kSmall, times, false));
  print("large_message", message(*rank, kLarge, times, false));
  print("large_message_while_read", message_while_read(guard, *rank, times));
  print("message_of_threads", message(*rank, kSmall, times, true));
  print("large_message_of_threads", message(*rank, kLarge, times, true));
  print("pressure", read(elbow_guard_pressure, guard, times));
  print("bytes", read(elbow_guard_in_flight, guard, times));
  for (int more = 1; more < 64; ++more) {
    elbow_guard_begin(elbow_guard_join(guard, more, 0), ELBOW_GUARD_OUT, kSmall);
  }
  print("pressure_of_64_ranks", read(elbow_guard_pressure, guard, times / 16));
  print("bytes_of_64_ranks", read(elbow_guard_in_flight, guard, times / 16), "}\n");
  elbow_guard_close(guard);
  return sum_of_reads < 0 ? 1 : 0;
}
