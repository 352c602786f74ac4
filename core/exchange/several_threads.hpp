// Whether the MPI can be used by several communication threads at once.
#pragma once

#include <cstddef>
#include <string>

#include "exchange/job.hpp"

namespace elbowroom {

// Throws RequestError naming `field` where `threads` communication threads cannot be had of this MPI.
void check_several_threads(const Job& job, const std::string& field, std::size_t threads);

}  // namespace elbowroom
