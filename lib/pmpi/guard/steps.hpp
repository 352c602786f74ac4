// The steps of this rank, as a guard sees and steers them: a step consists of phases, the stretches between two calls of MPI.
#pragma once

#include <cstdint>
#include <string>

#include "elbowroom/guard.h"

namespace elbowroom::pmpi {

// From now on the calls of this thread make steps, by the file of steps at `path`; false with elbow_guard's kind of sentence
// in `why`. `board` gets the settings of the arms where this rank leads.
bool start_steps(const std::string& path, std::int32_t rank, elbow_guard* board, std::string& why);
// The process is a child, or has ended MPI.
void stop_steps();

// A call that ends a phase begins, and ends, on some thread. `caller`: where the program called from.
void enter_call(int call, const void* caller);
void leave_call(int call);
// The program marks the begin of a step.
void mark_step();

}  // namespace elbowroom::pmpi
