#include "exchange/pattern.hpp"

#include <array>
#include <cmath>

#include "base/clock.hpp"
#include "protocol/payload.hpp"

namespace elbowroom {
namespace {

// Seeds of one batch. They differ by less than 256, and the words of two seeds differ in every byte.
constexpr std::uint64_t kPoison = 3;
constexpr std::uint64_t kLastSent = 1;
constexpr std::uint64_t kAnswered = 2;

std::size_t bytes(const Lane& lane) { return static_cast<std::size_t>(lane.size); }

void ping(const Lane& lane, std::int64_t iterations) {
  for (std::int64_t i = 0; i < iterations; ++i) {
    char* message = lane.buffers.sent(i);
    MPI_Send(message, lane.size, MPI_BYTE, 1, lane.tag, lane.comm);
    MPI_Recv(message, lane.size, MPI_BYTE, 1, lane.tag, lane.comm, MPI_STATUS_IGNORE);
  }
}

// The last message is looked at and stamped anew before it goes back, so that rank 0 knows it made the round.
bool pong(const Lane& lane, std::int64_t iterations, std::uint64_t seed) {
  for (std::int64_t i = 0; i + 1 < iterations; ++i) {
    char* message = lane.buffers.sent(i);
    MPI_Recv(message, lane.size, MPI_BYTE, 0, lane.tag, lane.comm, MPI_STATUS_IGNORE);
    MPI_Send(message, lane.size, MPI_BYTE, 0, lane.tag, lane.comm);
  }
  char* message = lane.buffers.sent(iterations - 1);
  MPI_Recv(message, lane.size, MPI_BYTE, 0, lane.tag, lane.comm, MPI_STATUS_IGNORE);
  const bool arrived = stamp_holds(message, bytes(lane), seed);
  stamp_message(message, bytes(lane), seed + kAnswered);
  MPI_Send(message, lane.size, MPI_BYTE, 0, lane.tag, lane.comm);
  return arrived;
}

// Two messages in flight on both sides; the sender never waits for an answer.
void send_stream(const Lane& lane, std::int64_t iterations, std::uint64_t seed) {
  std::array<MPI_Request, 2> pending = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  for (std::int64_t i = 0; i < iterations; ++i) {
    MPI_Request& request = pending[static_cast<std::size_t>(i % 2)];
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    char* message = lane.buffers.sent(i);
    if (i + 1 == iterations) {
      stamp_message(message, bytes(lane), seed + kLastSent);
    }
    MPI_Isend(message, lane.size, MPI_BYTE, 0, lane.tag, lane.comm, &request);
  }
  MPI_Waitall(2, pending.data(), MPI_STATUSES_IGNORE);
}

void receive_stream(const Lane& lane, std::int64_t iterations) {
  std::array<MPI_Request, 2> pending = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  for (std::int64_t i = 0; i < iterations; ++i) {
    MPI_Request& request = pending[static_cast<std::size_t>(i % 2)];
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Irecv(lane.buffers.received(i), lane.size, MPI_BYTE, 1, lane.tag, lane.comm, &request);
  }
  MPI_Waitall(2, pending.data(), MPI_STATUSES_IGNORE);
}

// Bidirectional is a ring of two: each sends and receives at once.
void shift(const Lane& lane, std::int64_t iterations, std::uint64_t seed) {
  const int successor = (lane.rank + 1) % lane.ranks;
  const int predecessor = (lane.rank + lane.ranks - 1) % lane.ranks;
  for (std::int64_t i = 0; i < iterations; ++i) {
    char* sent = lane.buffers.sent(i);
    if (i + 1 == iterations) {
      stamp_message(sent, bytes(lane), seed + kLastSent);
    }
    MPI_Sendrecv(sent, lane.size, MPI_BYTE, successor, lane.tag, lane.buffers.received(i), lane.size, MPI_BYTE,
                 predecessor, lane.tag, lane.comm, MPI_STATUS_IGNORE);
  }
}

bool is_shift(const Lane& lane) { return lane.pattern == Pattern::bidirectional || lane.pattern == Pattern::ring; }

}  // namespace

std::int64_t least_iterations(Pattern pattern) { return pattern == Pattern::receive ? 2 : 1; }

void prepare_batch(const Lane& lane, std::int64_t iterations, std::uint64_t seed) {
  const std::int64_t last = iterations - 1;
  const bool sends = is_shift(lane) || (lane.pattern == Pattern::pingpong) == (lane.rank == 0);
  if (is_shift(lane) || !sends) {
    stamp_message(lane.buffers.received(last), bytes(lane), seed + kPoison);
  }
  if (sends) {
    stamp_message(lane.buffers.sent(last), bytes(lane), seed);
  }
}

bool run_batch(const Lane& lane, std::int64_t iterations, std::uint64_t seed) {
  switch (lane.pattern) {
    case Pattern::pingpong:
      if (lane.rank != 0) {
        return pong(lane, iterations, seed);
      }
      ping(lane, iterations);
      return true;
    case Pattern::receive:
      lane.rank == 0 ? receive_stream(lane, iterations) : send_stream(lane, iterations, seed);
      return true;
    case Pattern::bidirectional:
    case Pattern::ring: shift(lane, iterations, seed); return true;
  }
  return false;
}

void ping_when_due(const Lane& lane, double period_ns, std::vector<DueMessage>& messages) {
  const std::int64_t begin = now_ns();
  const auto count = static_cast<std::int64_t>(messages.size());
  for (std::int64_t i = 0; i < count; ++i) {
    DueMessage& times = messages[static_cast<std::size_t>(i)];
    times.due = begin + std::llround(period_ns * static_cast<double>(i + 1));
    do {
      times.start = now_ns();
    } while (times.start < times.due);
    char* message = lane.buffers.sent(i);
    MPI_Send(message, lane.size, MPI_BYTE, 1, lane.tag, lane.comm);
    MPI_Recv(message, lane.size, MPI_BYTE, 1, lane.tag, lane.comm, MPI_STATUS_IGNORE);
    times.end = now_ns();
  }
}

bool batch_holds(const Lane& lane, std::int64_t iterations, std::uint64_t seed) {
  const char* last = lane.buffers.received(iterations - 1);
  if (lane.pattern == Pattern::pingpong) {
    return lane.rank != 0 || stamp_holds(last, bytes(lane), seed + kAnswered);
  }
  return (lane.pattern == Pattern::receive && lane.rank != 0) || stamp_holds(last, bytes(lane), seed + kLastSent);
}

bool whole_message_holds(const Lane& lane, std::uint64_t seed) {
  char* sent = lane.buffers.sent(0);
  char* received = lane.buffers.received(0);
  if (is_shift(lane)) {
    fill_message(sent, bytes(lane), seed);
    shift(lane, 1, seed - kLastSent);
    return message_holds(received, bytes(lane), seed);
  }
  const int sender = lane.pattern == Pattern::pingpong ? 0 : 1;
  bool holds = true;
  if (lane.rank == sender) {
    fill_message(sent, bytes(lane), seed);
    MPI_Send(sent, lane.size, MPI_BYTE, 1 - sender, lane.tag, lane.comm);
  } else {
    MPI_Recv(received, lane.size, MPI_BYTE, sender, lane.tag, lane.comm, MPI_STATUS_IGNORE);
    holds = message_holds(received, bytes(lane), seed);
  }
  return holds;
}

}  // namespace elbowroom
