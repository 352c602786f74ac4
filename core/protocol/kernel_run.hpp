// One kernel alone, without MPI: for benchmarks against other programs.
#pragma once

#include <iosfwd>

#include "protocol/request.hpp"

namespace elbowroom {

// Measures request.kernel on request.first.comp_cores `repeat` times for request.window seconds, one JSON line each, like
// phase A of a repetition. Throws RequestError and std::runtime_error.
void run_kernel_alone(const Request& request, int repeat, std::ostream& out);

}  // namespace elbowroom
