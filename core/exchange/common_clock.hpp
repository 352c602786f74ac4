// The clocks of all ranks, compared for a trace of the probe itself.
#pragma once

#include <mpi.h>

#include "elbowroom/clock.h"

namespace elbowroom {

class CommonClock {
 public:
  // Collective, as are the others. Nothing happens where nothing is traced.
  explicit CommonClock(MPI_Comm all);
  ~CommonClock();
  CommonClock(const CommonClock&) = delete;
  CommonClock& operator=(const CommonClock&) = delete;

  // Compares the clocks and records a sync point; throws std::runtime_error.
  void synchronise();

 private:
  MPI_Comm own_ = MPI_COMM_NULL;
  elbow_clock* clock_ = nullptr;
};

}  // namespace elbowroom
