#include "exchange/common_clock.hpp"

#include <stdexcept>
#include <string>

#include "elbowroom/clock_mpi.h"
#include "observe/tracing.hpp"

namespace elbowroom {
namespace {

[[noreturn]] void fail(const char* why) { throw std::runtime_error(std::string("clocks: ") + why); }

}  // namespace

CommonClock::CommonClock(MPI_Comm all, Use use) : use_(use) {
  if (use == Use::trace && !tracing()) return;
  MPI_Comm_dup(all, &own_);
  const elbow_clock_peers peers = elbow_clock_peers_of_mpi(&own_);
  clock_ = elbow_clock_new(&peers);
  if (clock_ == nullptr) fail(elbow_clock_error());
}

CommonClock::~CommonClock() {
  elbow_clock_free(clock_);
  if (own_ != MPI_COMM_NULL) MPI_Comm_free(&own_);
}

elbow_clock_sync_point CommonClock::synchronise() {
  elbow_clock_sync_point point{};
  point.size = sizeof point;
  if (clock_ == nullptr) return point;
  if (elbow_clock_synchronise(clock_, &point) != 0) fail(elbow_clock_error());
  if (use_ == Use::trace && elbow_trace_sync(clock_, &point) != 0) fail(elbow_trace_error());
  return point;
}

}  // namespace elbowroom
