#include "runtime/pingpong.hpp"

#include <numeric>

#include "base/clock.hpp"
#include "protocol/batching.hpp"
#include "protocol/payload.hpp"
#include "protocol/steady.hpp"

namespace elbowroom::runtime {
namespace {

constexpr int kHeaderTag = 4;
constexpr int kCalibrations = 12;  // of the number of round trips in a batch, at most
constexpr std::uint64_t kFirstSeed = 1000;
constexpr std::uint64_t kLastSeed = 2000;
constexpr std::uint64_t kCorruption = 100;  // what a broken transfer would leave

struct Header {
  enum Kind : std::int64_t { end, batch, whole };
  std::int64_t kind;
  std::int64_t round_trips;
  std::uint64_t seed;
};

std::int64_t announce(const Job& job, const Header& header) {
  std::int64_t answer = 0;
  MPI_Send(&header, sizeof header, MPI_BYTE, 1, kHeaderTag, job.headers());
  MPI_Recv(&answer, sizeof answer, MPI_BYTE, 1, kHeaderTag, job.headers(), MPI_STATUS_IGNORE);
  return answer;
}

Header next_header(const Job& job, bool held) {
  Header header{};
  const std::int64_t answer = held ? 1 : 0;
  MPI_Recv(&header, sizeof header, MPI_BYTE, 0, kHeaderTag, job.headers(), MPI_STATUS_IGNORE);
  MPI_Send(&answer, sizeof answer, MPI_BYTE, 0, kHeaderTag, job.headers());
  return header;
}

void fill(Path& path, std::uint64_t seed) {
  path.touch([seed](void* data, std::size_t size) { fill_message(data, size, seed); });
}

bool holds(Path& path, std::uint64_t seed) {
  bool result = false;
  path.touch([&](void* data, std::size_t size) { result = message_holds(data, size, seed); });
  return result;
}

// There and back with other contents each way, so that a message that never came is seen.
bool whole_message_returns(const Job& job, Path& path, std::uint64_t seed) {
  fill(path, seed);
  announce(job, {Header::whole, 1, seed});
  path.send();
  path.receive();
  return holds(path, seed + 1);
}

Batch timed(const Job& job, Path& path, std::int64_t round_trips) {
  announce(job, {Header::batch, round_trips, 0});
  const std::int64_t begun = now_ns();
  path.round_trips(round_trips);
  return {now_ns() - begun, round_trips};
}

std::int64_t fitting(const Job& job, Path& path, double target_ns) {
  std::int64_t round_trips = 1;
  for (int i = 0; i < kCalibrations; ++i) {
    const Batch batch = timed(job, path, round_trips);
    if (batch_fits(round_trips, static_cast<double>(batch.took_ns), target_ns, 1)) {
      break;
    }
    round_trips = next_iterations(round_trips, static_cast<double>(batch.took_ns), target_ns, 1);
  }
  return round_trips;
}

}  // namespace

double Measured::seconds() const {
  const std::int64_t sum = std::accumulate(batches.begin(), batches.end(), std::int64_t{0},
                                           [](std::int64_t so_far, const Batch& one) { return so_far + one.took_ns; });
  return static_cast<double>(sum) * 1e-9;
}

std::int64_t Measured::round_trips() const {
  return std::accumulate(batches.begin(), batches.end(), std::int64_t{0},
                         [](std::int64_t so_far, const Batch& one) { return so_far + one.round_trips; });
}

double Measured::half_round_trip() const { return seconds() * 1e6 / 2 / static_cast<double>(round_trips()); }

Measured lead(const Job& job, Path& path, const Window& window) {
  Measured result;
  result.valid = whole_message_returns(job, path, kFirstSeed);
  const std::int64_t round_trips = fitting(job, path, batch_target_ns(window.seconds, minimum_sample_ns()));
  SteadyDetector steady(window.steady_window, window.steady_cov);
  std::vector<Batch> all;
  result.start_ns = now_ns();
  for (double measured = 0, waited = 0;;) {
    all.push_back(timed(job, path, round_trips));
    const double took = static_cast<double>(all.back().took_ns);
    result.steady = steady.add(took / static_cast<double>(round_trips));
    const double total = static_cast<double>(now_ns() - result.start_ns) * 1e-9;
    measured = result.steady ? measured + took * 1e-9 : 0;
    waited = result.steady ? waited : total;
    const bool enough = result.steady && all.size() - steady.first() >= window.steady_window;
    if ((enough && measured >= window.seconds) || (!result.steady && waited >= window.limit + window.seconds)) {
      break;
    }
  }
  result.end_ns = now_ns();
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(result.steady ? steady.first() : 0);
  result.batches.assign(first, all.end());
  result.valid = whole_message_returns(job, path, kLastSeed) && result.valid;
  result.valid = announce(job, {Header::end, 0, 0}) == 1 && result.valid;
  return result;
}

void follow(const Job& job, Path& path, const Window& window) {
  bool held = true;
  for (;;) {
    const Header header = next_header(job, held);
    if (header.kind == Header::end) {
      return;
    }
    if (header.kind == Header::batch) {
      path.round_trips(header.round_trips);
      continue;
    }
    path.receive();
    held = holds(path, header.seed) && held;
    fill(path, header.seed + 1 + (window.corrupt ? kCorruption : 0));
    path.send();
  }
}

}  // namespace elbowroom::runtime
