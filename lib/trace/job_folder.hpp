// Where a process's files go: each job (the processes of one MPI_COMM_WORLD, or one process alone) has a folder of its own.
// The first job that starts in a trace's directory gets the directory itself, the next ones job-2, job-3 ... inside it.
#pragma once

#include <string>

namespace elbowroom::trace {

// The folder in `directory` of the job that `identity` names, claimed (job.json) if no process has yet. Throws Refusal.
std::string claim_folder(const std::string& directory, const std::string& identity, int ranks);

}  // namespace elbowroom::trace
