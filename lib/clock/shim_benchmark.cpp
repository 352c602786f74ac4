// Real processes and messages, clocks made wrong on purpose: each rank reads the processor's counter through a shim that
// drifts or jumps, so that the truth is known to the ns. Prints one JSON object on rank 0.
//
//     clock_benchmark affine|steps MESSAGES EVERY    so many messages to the next rank, clocks compared every so many s
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/host_clock.hpp"
#include "clock/correction.hpp"
#include "clock/job_clock.hpp"

namespace {

using namespace elbowroom::clock;
using elbowroom::HostClock;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr int kBatch = 1000;       // messages between looking whether clocks are to be compared
constexpr int kMoments = 100'000;  // at which errors are looked at, of each rank

// A rank's clock: `ns` of the counter since the start becomes 12.3 s a rank more, at another rate.
struct Shim {
  int rank = 0;
  bool jumps = false;
  std::int64_t start = 0;

  std::int64_t at(std::int64_t ns) const {
    const std::int64_t passed = ns - start;
    const double ppm = jumps ? 20.0 * rank : (rank % 2 == 0 ? -100.0 : 100.0);
    std::int64_t shown =
        ns + rank * 12'300'000'000 + static_cast<std::int64_t>(ppm * 1e-6 * static_cast<double>(passed));
    if (jumps && rank > 0) {
      // 70 us forth and back, each 0.4 s.
      shown += (passed / (2 * kSecond / 5)) % 2 == 1 ? 70'000 : 0;
    }
    return shown;
  }
};

Peers peers_of(MPI_Comm communicator) {
  Peers peers;
  MPI_Comm_rank(communicator, &peers.rank);
  MPI_Comm_size(communicator, &peers.size);
  peers.send = [communicator](int to, const void* bytes, std::size_t count) {
    MPI_Send(bytes, static_cast<int>(count), MPI_BYTE, to, 0, communicator);
  };
  peers.receive = [communicator](int from, void* bytes, std::size_t count) {
    MPI_Recv(bytes, static_cast<int>(count), MPI_BYTE, from, 0, communicator, MPI_STATUS_IGNORE);
  };
  return peers;
}

// What one rank saw, in its own clock.
struct Timestamps {
  std::vector<std::int64_t> sent;      // just before, to the next rank
  std::vector<std::int64_t> received;  // just after, from the one before
  std::vector<SyncPoint> points;
  std::vector<SyncPoint> barriers;  // two plain ones: all ranks are taken to leave at once
};

SyncPoint after_a_barrier(const JobClock& clock) {
  MPI_Barrier(MPI_COMM_WORLD);
  const std::int64_t local = clock.local();
  std::int64_t first = local;
  MPI_Bcast(&first, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  return {local, {first - local, first - local, first - local}};
}

// Messages around the ring, clocks compared in between.
Timestamps exchange(JobClock& clock, const Peers& peers, int messages, double every) {
  Timestamps times;
  const int next = (peers.rank + 1) % peers.size;
  const int before = (peers.rank + peers.size - 1) % peers.size;
  times.points.push_back(clock.synchronise());
  times.barriers.push_back(after_a_barrier(clock));
  for (int i = 0; i < messages; ++i) {
    int token = i;
    // One message is on its way at a time, so that none waits for its receiver.
    for (const bool mine : {peers.rank % 2 == 0, peers.rank % 2 == 1}) {
      if (mine) {
        times.sent.push_back(clock.local());
        MPI_Send(&token, 1, MPI_INT, next, 1, MPI_COMM_WORLD);
      } else {
        MPI_Recv(&token, 1, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        times.received.push_back(clock.local());
      }
    }
    if (i % kBatch == kBatch - 1 && clock.due(every)) {
      times.points.push_back(clock.synchronise());
    }
  }
  times.barriers.push_back(after_a_barrier(clock));
  times.points.push_back(clock.synchronise());
  return times;
}

// Messages to this rank that arrive before they are sent, when all correct their times so.
long long tachyons(const Timestamps& moments, const Peers& peers, const Correction& correction) {
  const auto corrected = [&](std::vector<std::int64_t> times) {
    for (std::int64_t& time : times) {
      time = peers.rank == 0 ? time : correction.at(time).time;
    }
    return times;
  };
  const std::vector<std::int64_t> sent = corrected(moments.sent);
  const std::vector<std::int64_t> received = corrected(moments.received);
  std::vector<std::int64_t> theirs(received.size());
  MPI_Sendrecv(sent.data(), static_cast<int>(sent.size()), MPI_INT64_T, (peers.rank + 1) % peers.size, 2, theirs.data(),
               static_cast<int>(theirs.size()), MPI_INT64_T, (peers.rank + peers.size - 1) % peers.size, 2,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  long long result = 0;
  for (std::size_t i = 0; i < received.size(); ++i) {
    result += received[i] < theirs[i] ? 1 : 0;
  }
  long long all = 0;
  MPI_Reduce(&result, &all, 1, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  return all;
}

// Errors of corrected times at moments spread over the run, and how many were outside their bounds.
struct Errors {
  std::vector<std::int64_t> ns;
  long long outside = 0;
};

Errors errors_of(const Correction& correction, const Shim& own, std::int64_t begin, std::int64_t end) {
  Errors errors;
  const Shim reference{0, own.jumps, own.start};
  for (int i = 0; i < kMoments; ++i) {
    const std::int64_t truth = begin + (end - begin) / kMoments * i;
    const Corrected result = correction.at(own.at(truth));
    errors.ns.push_back(std::abs(result.time - reference.at(truth)));
    errors.outside += errors.ns.back() > result.error + 2 ? 1 : 0;  // 2: shims show whole ns
  }
  std::sort(errors.ns.begin(), errors.ns.end());
  return errors;
}

int run(bool jumps, int messages, double every) {
  const Peers peers = peers_of(MPI_COMM_WORLD);
  HostClock counter = elbowroom::host_clock();
  MPI_Bcast(&counter, sizeof counter, MPI_BYTE, 0, MPI_COMM_WORLD);
  std::int64_t start = counter.now();
  MPI_Bcast(&start, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  const Shim shim{peers.rank, jumps, start};
  JobClock clock(peers, {"shim " + std::to_string(peers.rank), {}, [&] { return shim.at(counter.now()); }});
  const Timestamps times = exchange(clock, peers, messages, every);
  const std::int64_t end = counter.now();

  const Correction all(times.points);
  const long long ours = tachyons(times, peers, all);
  const long long barriers = tachyons(times, peers, Correction(times.barriers));
  const long long one = tachyons(times, peers, Correction({times.points.front()}));
  // Of the last rank, whose clock is not the reference's.
  Errors errors = errors_of(all, shim, start + (end - start) / 100, end);
  long long values[] = {errors.ns[kMoments / 2],
                        errors.ns[kMoments * 95 / 100],
                        errors.ns.back(),
                        errors.outside,
                        all.flags().rejected,
                        all.flags().steps,
                        static_cast<long long>(all.points().size())};
  constexpr int kValues = sizeof values / sizeof values[0];
  if (peers.rank == peers.size - 1) {
    MPI_Send(values, kValues, MPI_LONG_LONG, 0, 3, MPI_COMM_WORLD);
  }
  if (peers.rank == 0) {
    MPI_Recv(values, kValues, MPI_LONG_LONG, peers.size - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::printf(
        "{\"counter\": %s, \"seconds\": %.3f, \"messages\": %lld, \"tachyons\": %lld, \"barriers\": %lld, \"one\": "
        "%lld, "
        "\"p50\": %lld, \"p95\": %lld, \"max\": %lld, \"outside\": %lld, \"moments\": %d, \"rejected\": %lld, "
        "\"steps\": %lld, \"points\": %lld}\n",
        counter.counter ? "true" : "false", static_cast<double>(end - start) / 1e9,
        static_cast<long long>(messages) * peers.size, ours, barriers, one, values[0], values[1], values[2], values[3],
        kMoments, values[4], values[5], values[6]);
  }
  return 0;
}

}  // namespace

// Called by clock_benchmark's main.
int shim_benchmark(const char* kind, int messages, double every) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const bool jumps = std::strcmp(kind, "steps") == 0;
  if (size % 2 != 0 || (!jumps && std::strcmp(kind, "affine") != 0)) {
    std::fprintf(stderr, "clock_benchmark: start an even number of processes: affine|steps MESSAGES EVERY\n");
    return MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return run(jumps, messages, every);
}
