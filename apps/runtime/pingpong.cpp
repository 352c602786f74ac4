#include "runtime/pingpong.hpp"

#include "base/clock.hpp"
#include "protocol/payload.hpp"

namespace elbowroom::runtime {
namespace {

constexpr int kHeaderTag = 4;
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

std::int64_t timed(const Job& job, Path& path, std::int64_t round_trips) {
  announce(job, {Header::batch, round_trips, 0});
  const std::int64_t begun = now_ns();
  path.round_trips(round_trips);
  return now_ns() - begun;
}

}  // namespace

double Measured::half_round_trip() const { return batches.seconds() * 1e6 / 2 / static_cast<double>(batches.count()); }

Measured lead(const Job& job, Path& path, const Window& window) {
  Measured result;
  result.valid = whole_message_returns(job, path, kFirstSeed);
  result.batches =
      program::measure_batches(window.batches, [&](std::int64_t round_trips) { return timed(job, path, round_trips); });
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
