// Messages between two ranks of a job of any size: one leads and reads its own clock, the other follows.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "exchange/pattern.hpp"

namespace elbowroom {

// Both ranks construct it, and then call lead() and follow() in turn, with the same pattern and size.
class PairExchange {
 public:
  // `memory` has room for two messages of the largest size. Throws std::runtime_error where the partner is silent.
  PairExchange(int rank, int partner, char* memory);
  ~PairExchange();
  PairExchange(const PairExchange&) = delete;
  PairExchange& operator=(const PairExchange&) = delete;

  // Nanoseconds of one iteration, the median over batches that last about `seconds` together, as the leader's clock says;
  // the follower is told. Negative where what arrived was wrong. A ping-pong starts at the leader, which receives a stream
  // (Pattern::receive).
  double lead(Pattern pattern, std::size_t size, double seconds);
  double follow(Pattern pattern, std::size_t size);
  // Returns when both are here.
  void meet();

 private:
  struct Header;
  Lane lane(Pattern pattern, std::size_t size, bool leads) const;
  double batch(const Lane& lane, std::int64_t iterations, bool& holds);

  int rank_;
  int partner_;
  char* memory_;
  MPI_Comm led_ = MPI_COMM_NULL;       // this rank is rank 0 of it
  MPI_Comm followed_ = MPI_COMM_NULL;  // the partner is
  std::uint64_t seed_ = 0;
};

}  // namespace elbowroom
