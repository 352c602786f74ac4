#include "trace/job_identity.hpp"

#include <unistd.h>

#include <cerrno>

#include "trace/process.hpp"
#include "trace/refusal.hpp"

namespace elbowroom::trace {
namespace {

// The words of a process's command, each with a 0 behind it.
std::string command_of(const std::string& process) { return read_text("/proc/" + process + "/cmdline"); }

std::string word_after(const std::string& command, const std::string& option) {
  const std::size_t at = command.find(std::string(1, '\0') + option + '\0');
  if (at == std::string::npos) {
    return "";
  }
  const std::size_t begin = at + option.size() + 2;
  return command.substr(begin, command.find('\0', begin) - begin);
}

// Hydra (MPICH, Intel MPI) tells its ranks no name of their job. Its proxy on each host, an ancestor of the ranks, has in its
// command the port of mpiexec, and the number of the process group, which MPI_Comm_spawn increments. From MPICH 4.3 on the same
// proxy serves all groups, so that those of spawned processes have no name. Throws Refusal for these.
std::string hydra_job(bool spawned) {
  std::string process = "self";
  for (int generation = 0; generation < 16; ++generation) {
    process = process_field(process, kParent);
    if (process.empty() || process == "0") {
      return "";
    }
    const std::string command = command_of(process);
    const std::string port = word_after(command, "--control-port");
    if (!port.empty()) {
      const std::string group = word_after(command, "--pgid");
      if (spawned && (group.empty() || group == "0")) {
        throw Refusal(ENOTSUP,
                      "it was started by MPI_Comm_spawn, and this launcher does not say which processes were started "
                      "together; the job that spawned it is traced");
      }
      return port + " " + group;
    }
  }
  return "";
}

}  // namespace

std::string launched_job(const Variable& variable) {
  const auto value = [&](const char* name) {
    const char* result = variable(name);
    return std::string(result == nullptr ? "" : result);
  };
  const std::string job = "job " + value("ELBOW_TRACE_JOB");
  if (!value("ELBOW_TRACE_RANK").empty()) {
    return job;
  }
  if (const std::string name = value("PMIX_NAMESPACE"); !name.empty()) {
    return job + " " + name;
  }
  if (!value("PMI_RANK").empty() || !value("OMPI_COMM_WORLD_RANK").empty()) {
    if (const std::string name = hydra_job(!value("PMI_SPAWNED").empty()); !name.empty()) {
      return job + " " + name;
    }
  }
  // Slurm's are set for a job script as well, but that of a step.
  if (const std::string step = value("SLURM_STEP_ID"); !step.empty() && !value("SLURM_PROCID").empty()) {
    return job + " " + value("SLURM_JOB_ID") + "." + step;
  }
  return value("PMI_RANK").empty() && value("OMPI_COMM_WORLD_RANK").empty() ? "" : job;
}

std::string process_identity() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return std::string(host) + " process " + std::to_string(getpid()) + " " + process_field("self", kStarted);
}

}  // namespace elbowroom::trace
