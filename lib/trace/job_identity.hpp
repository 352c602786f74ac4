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

// Where a process's files go: each job (the processes of one MPI_COMM_WORLD, or one process alone) has a folder of its own.
// The first job that starts in a trace's directory gets the directory itself, the next ones job-2, job-3 ... inside it.
// The folder in `directory` of the job that `identity` names, claimed (job.json) if no process has yet. Throws Refusal.
std::string claim_folder(const std::string& directory, const std::string& identity, int ranks);

}  // namespace elbowroom::trace
