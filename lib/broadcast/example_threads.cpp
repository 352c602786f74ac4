// Broadcasts without MPI: the ranks are threads, which the transport of example_threads.hpp connects. Rank 0 sends a table to
// all others, which wait for it and do not learn how it came.
//
//     find_package(elbowroom-broadcast REQUIRED)
//     target_link_libraries(example_threads PRIVATE elbowroom::broadcast Threads::Threads)
#include "example_threads.hpp"

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

static void check(int result) {
  if (result == 0) return;
  std::fprintf(stderr, "%s\n", elbow_broadcast_error());
  std::exit(1);
}

static void run(int rank, int ranks) {
  const elbow_broadcast_transport transport = transport_of(rank, ranks);
  elbow_broadcast* const broadcast = elbow_broadcast_new(&transport, nullptr);
  std::vector<double> table(100000, rank == 0 ? 42 : 0);
  const size_t size = table.size() * sizeof table[0];
  elbow_broadcast_operation operation = 0;
  if (rank == 0) {
    std::vector<elbow_broadcast_recipient> recipients;
    for (int to = 1; to < ranks; ++to) recipients.push_back({to, 0});
    const elbow_broadcast_way way = {sizeof way, "binary", 65536};
    check(elbow_broadcast_send(broadcast, 0, 7, table.data(), size, recipients.data(), recipients.size(), &way,
                               &operation));
  } else {
    check(elbow_broadcast_receive(broadcast, 0, 0, 7, table.data(), size, &operation));
  }
  check(elbow_broadcast_wait(broadcast, operation, ELBOW_BROADCAST_RELEASED));
  std::printf("rank %d: the last value is %.0f\n", rank, table.back());
  elbow_broadcast_free(broadcast);
}

int main() {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 8; ++rank) threads.emplace_back(run, rank, 8);
  for (std::thread& thread : threads) thread.join();
}
