#include <algorithm>
#include <cstdio>

#include "bench.hpp"
#include "elbowroom/broadcast_mpi.h"

namespace elbowroom::broadcast::bench {
namespace {

constexpr int kTag = 1;
constexpr int kWarmUp = 200;  // exchanges before those of a block

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The median of half the time of an exchange.
template <typename Exchange>
double block(int exchanges, const Exchange& exchange) {
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kWarmUp; ++i) exchange();
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(exchanges));
  for (int i = 0; i < exchanges; ++i) {
    const double begun = MPI_Wtime();
    exchange();
    times.push_back((MPI_Wtime() - begun) / 2);
  }
  return median(times);
}

void exchange_by_mpi(int rank, std::vector<char>& data) {
  const auto count = static_cast<int>(data.size());
  const int peer = 1 - rank;
  if (rank == 0) MPI_Send(data.data(), count, MPI_BYTE, peer, kTag, MPI_COMM_WORLD);
  MPI_Recv(data.data(), count, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(data.data(), count, MPI_BYTE, peer, kTag, MPI_COMM_WORLD);
}

void exchange_by_library(elbow_broadcast* broadcast, int rank, const std::vector<char>& data, std::vector<char>& into) {
  const elbow_broadcast_recipient peer = {1 - rank, 0};
  elbow_broadcast_operation sent = 0;
  elbow_broadcast_operation received = 0;
  const auto send = [&] {
    check(elbow_broadcast_send(broadcast, 0, kTag, data.data(), data.size(), &peer, 1, nullptr, &sent) == 0);
    check(elbow_broadcast_wait(broadcast, sent, ELBOW_BROADCAST_RELEASED) == 0);
  };
  check(elbow_broadcast_receive(broadcast, 0, peer.rank, kTag, into.data(), into.size(), &received) == 0);
  if (rank == 0) send();
  check(elbow_broadcast_wait(broadcast, received, ELBOW_BROADCAST_RELEASED) == 0);
  if (rank == 1) send();
}

}  // namespace

void check(bool succeeded) {
  if (succeeded) return;
  std::fprintf(stderr, "error: %s\n", elbow_broadcast_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

Latency measure_latency(std::size_t size, int exchanges, int blocks) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  const elbow_broadcast_transport transport = elbow_broadcast_transport_of_mpi(own);
  elbow_broadcast* const broadcast = elbow_broadcast_new(&transport, nullptr);
  check(broadcast != nullptr);
  std::vector<char> data(size);
  std::vector<char> into(size);
  Latency latency;
  for (int i = 0; i < blocks; ++i) {
    if (rank > 1) {
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Barrier(MPI_COMM_WORLD);
      continue;
    }
    latency.mpi.push_back(block(exchanges, [&] { exchange_by_mpi(rank, data); }));
    latency.library.push_back(block(exchanges, [&] { exchange_by_library(broadcast, rank, data, into); }));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  elbow_broadcast_free(broadcast);
  MPI_Comm_free(&own);
  return latency;
}

}  // namespace elbowroom::broadcast::bench
