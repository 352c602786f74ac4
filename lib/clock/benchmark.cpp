// How wrong synchronised clocks are where the truth is known: two processes of one computer, each in a time namespace of
// its own (benchmarks/clock.py starts them so), whose clocks are read beside the processor's counter, which both share.
//
//     clock_benchmark COUNT    compares the clocks so often and writes one JSON object, on rank 0
//     clock_benchmark affine|steps MESSAGES EVERY    see shim_benchmark.cpp
#include <mpi.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <limits>

#include "base/host_clock.hpp"
#include "elbowroom/clock.h"
#include "elbowroom/clock_mpi.h"

int shim_benchmark(const char* kind, int messages, double every);

namespace {

std::int64_t raw_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// The same instant by the counter, ns, and by the clock that is compared, as near as the quickest of some tries tells.
struct Instant {
  std::int64_t counter;
  std::int64_t raw;
};

Instant instant(const elbowroom::HostClock& counter) {
  Instant best{};
  std::int64_t narrowest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 400; ++i) {
    const std::int64_t before = counter.now();
    const std::int64_t raw = raw_ns();
    const std::int64_t after = counter.now();
    if (after - before < narrowest) {
      narrowest = after - before;
      best = {before + (after - before) / 2, raw};
    }
  }
  return best;
}

int failed(const char* what) {
  std::fprintf(stderr, "clock_benchmark: %s: %s\n", what, elbow_clock_error());
  return MPI_Abort(MPI_COMM_WORLD, 1);
}

// What rank 1 has to tell of one comparison.
struct Sample {
  Instant instant;
  elbow_clock_sync_point point{sizeof(elbow_clock_sync_point), 0, 0, 0, 0, 0};
  elbow_clock_sync_point met = point;
  std::int64_t late;
};

// All durations in ns: how far the offset is off, and from its bounds, how far apart both left the barrier, how late each
// was, and how long comparing took.
void print(const Sample& own, const Sample& other, std::int64_t took) {
  const std::int64_t truth = own.instant.raw + (other.instant.counter - own.instant.counter) - other.instant.raw;
  const auto number = [](std::int64_t value) { return static_cast<long long>(value); };
  std::printf(
      "{\"error\": %lld, \"below\": %lld, \"above\": %lld, \"barrier\": %lld, \"late\": [%lld, %lld], \"took\": %lld}",
      number(other.point.offset - truth), number(truth - other.point.low), number(other.point.high - truth),
      number(other.met.local + truth - own.met.local), number(own.late), number(other.late), number(took));
}

int measure(int count) {
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  elbow_clock_peers peers = elbow_clock_peers_of_mpi(&own);
  elbow_clock* clock = elbow_clock_new(&peers);
  if (clock == nullptr) {
    return failed("new");
  }
  // Rank 0's calibration for both: two would drift apart.
  elbowroom::HostClock counter = elbowroom::host_clock();
  MPI_Bcast(&counter, sizeof counter, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (peers.rank == 0) {
    std::printf("{\"clocks\": %d, \"source\": \"%s\", \"counter\": %s, \"points\": [", elbow_clock_count(clock),
                elbow_clock_source(clock), counter.counter ? "true" : "false");
  }
  for (int i = 0; i < count; ++i) {
    Sample sample{};
    const std::int64_t before = raw_ns();
    if (elbow_clock_synchronise(clock, &sample.point) != 0) {
      return failed("synchronise");
    }
    const std::int64_t took = raw_ns() - before;
    if (elbow_clock_barrier(clock, &sample.met, &sample.late) != 0) {
      return failed("barrier");
    }
    sample.instant = instant(counter);
    if (peers.rank == 1) {
      MPI_Send(&sample, sizeof sample, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    } else {
      Sample other{};
      MPI_Recv(&other, sizeof other, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      std::printf("%s", i == 0 ? "" : ", ");
      print(sample, other, took);
    }
  }
  if (peers.rank == 0) {
    std::printf("]}\n");
  }
  elbow_clock_free(clock);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc == 4) {
    const int done = shim_benchmark(argv[1], std::atoi(argv[2]), std::atof(argv[3]));
    MPI_Finalize();
    return done;
  }
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) {
    std::fprintf(stderr, "clock_benchmark: %d processes; start two\n", size);
    return MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int result = measure(argc > 1 ? std::atoi(argv[1]) : 100);
  MPI_Finalize();
  return result;
}
