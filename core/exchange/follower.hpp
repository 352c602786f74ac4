// Every rank but 0: does what rank 0 says.
#pragma once

#include "exchange/job.hpp"

namespace elbowroom {

// Returns when rank 0 says quit.
void follow(const Job& job);

}  // namespace elbowroom
