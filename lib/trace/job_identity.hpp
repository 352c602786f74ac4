// Which processes are of one job: those of one MPI_COMM_WORLD, or one process alone.
#pragma once

#include <functional>
#include <string>

namespace elbowroom::trace {

using Variable = std::function<const char*(const char*)>;

// What all processes of this process's job have in common, and no other job: the launcher's name for it. Empty where the
// launcher gives none, as for a program that was started without one. Throws Refusal for spawned processes that the launcher
// does not tell apart.
std::string launched_job(const Variable& variable);
// What no other process has: host, process and when it began.
std::string process_identity();

}  // namespace elbowroom::trace
