// The measured loops: plain blocking MPI, nothing else inside.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "machine/machine.hpp"
#include "protocol/due_message.hpp"
#include "protocol/message_layout.hpp"
#include "protocol/request.hpp"

namespace elbowroom {

// The buffers of one communication thread, cycled through as the policy of reuse says.
class Buffers {
 public:
  Buffers() = default;
  Buffers(char* memory, const MessageLayout& layout) : memory_(memory), layout_(layout) {}
  char* sent(std::int64_t i) const { return at(0, i); }
  char* received(std::int64_t i) const { return at(layout_.sides - 1, i); }

 private:
  char* at(std::int64_t side, std::int64_t i) const {
    return memory_ + (side * layout_.count + i % layout_.count) * layout_.stride;
  }
  char* memory_ = nullptr;
  MessageLayout layout_;
};

// One communication thread's part in the exchange.
struct Lane {
  Pattern pattern = Pattern::pingpong;
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int ranks = 2;
  int tag = 0;
  int size = 0;  // bytes
  Buffers buffers;
};

// Runs `iterations` of the pattern. What is sent last carries stamps of seed + 1 (in answers to a ping: seed + 2), what is
// sent before carries those of `seed`; see expected_seed(). prepare_batch() must have been called before with the same
// arguments, and batch_holds() tells after it whether what had to arrive did.
void prepare_batch(const Lane& lane, std::int64_t iterations, std::uint64_t seed);
bool run_batch(const Lane& lane, std::int64_t iterations, std::uint64_t seed);
bool batch_holds(const Lane& lane, std::int64_t iterations, std::uint64_t seed);

// As run_batch() on rank 0 of a ping-pong, with messages.size() iterations: message i starts `period_ns` after message
// i - 1 was due, or at once when that time is over. Fills in the times; between two messages it reads the clock only.
void ping_when_due(const Lane& lane, double period_ns, std::vector<DueMessage>& messages);

// Exchanges one message and checks every byte of it, on all ranks that take part.
bool whole_message_holds(const Lane& lane, std::uint64_t seed);

// Messages that one iteration sends in one direction is 1 for every pattern; the fewest iterations of a batch are more
// where several messages must be in flight.
std::int64_t least_iterations(Pattern pattern);

}  // namespace elbowroom
