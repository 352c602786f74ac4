// Which threads are busy on which cores, over all ranks of a host: two on one core measure the scheduler.
#pragma once

#include <string>
#include <vector>

#include "common/settings.hpp"
#include "exchange/job.hpp"

namespace elbowroom::program {

// A thread that keeps its core busy. `field`: what of the settings put it there; `yields`: it waits for messages inside an
// MPI that yields while it waits, so that two such threads may share a core (docs/reference/protocol.md).
struct BusyThread {
  std::string what;
  int core = 0;
  std::string field;
  bool yields = false;
};

// Throws RequestError, on all ranks alike, where two busy threads of one host share a core and may not, and where a core
// does not exist or is outside the cpuset. With `scheduling` sharing is wanted. Returns whether any core is shared.
// Collective.
bool place(const Job& job, const std::vector<BusyThread>& own, bool scheduling);

// A communication core and `threads` computing cores for each rank of this host; where there are too few, all ranks share the
// same ones. Throws RequestError where there are too few for one.
Settings own_settings(const Job& job, std::size_t threads);

}  // namespace elbowroom::program
