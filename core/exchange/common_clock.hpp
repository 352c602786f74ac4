// The clocks of all ranks, compared for a trace of the probe itself, or for times of several ranks.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "elbowroom/clock.h"

namespace elbowroom {

class CommonClock {
 public:
  enum class Use { trace, times };

  // Collective, as is synchronise(). With Use::trace nothing happens where nothing is traced.
  explicit CommonClock(MPI_Comm all, Use use = Use::trace);
  ~CommonClock();
  CommonClock(const CommonClock&) = delete;
  CommonClock& operator=(const CommonClock&) = delete;

  // Compares the clocks, and records the sync point in a trace; throws std::runtime_error.
  elbow_clock_sync_point synchronise();
  // This host's clock now, ns: that of the sync points. Only with Use::times.
  std::int64_t local() const { return elbow_clock_local(clock_); }

 private:
  Use use_;
  MPI_Comm own_ = MPI_COMM_NULL;
  elbow_clock* clock_ = nullptr;
};

}  // namespace elbowroom
