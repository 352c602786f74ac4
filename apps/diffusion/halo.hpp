// The exchange: the separator's values go to the neighbours, theirs come into the ghosts.
#pragma once

#include <mpi.h>

#include <vector>

#include "common/gate.hpp"
#include "diffusion/part.hpp"
#include "machine/machine.hpp"

namespace elbowroom::diffusion {

using program::Waiting;

class Halo {
 public:
  // Messages are packed in memory of NUMA node `node`. Throws std::runtime_error when there is not enough.
  Halo(const Part& part, int node, Waiting waiting);
  ~Halo();
  Halo(const Halo&) = delete;
  Halo& operator=(const Halo&) = delete;

  // Gives each of `threads` threads, as many as will ever exchange at once, a communicator of its own. Collective.
  void connect(MPI_Comm comm, int threads);
  // What thread `thread` of `threads` does in one exchange of `field`: each message is cut into as many pieces as there are
  // threads, one for each, so that all have equal shares and two ranks suffice.
  void exchange(double* field, int thread, int threads);
  Waiting waiting() const { return waiting_; }

 private:
  double* packed(std::size_t link) const { return static_cast<double*>(memory_.data()) + starts_[link]; }

  const Part& part_;
  Arena memory_;
  std::vector<std::size_t> starts_;  // of each link's values in `memory_`
  std::vector<MPI_Comm> comms_;
  std::vector<std::vector<MPI_Request>> requests_;  // of each thread
  Waiting waiting_;
};

}  // namespace elbowroom::diffusion
