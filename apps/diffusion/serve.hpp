// The conversation: one JSON line asks, one answers.
#pragma once

#include <string>

#include "exchange/job.hpp"

namespace elbowroom::diffusion {

// Both return the exit code, the same on all ranks: 0, 1 (the machine) or 2 (what was asked). Rank 0 writes to stdout.

// Says hello, then answers requests on stdin until its end. Collective.
int measure(const Job& job, const std::string& config);
// Runs to `time` and tells the error. Collective.
int solve(const Job& job, const std::string& config, double time);

}  // namespace elbowroom::diffusion
