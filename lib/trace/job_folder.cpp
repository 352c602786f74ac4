#include "trace/job_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "trace/lines.hpp"
#include "trace/process.hpp"
#include "trace/refusal.hpp"
#include "trace/ring.hpp"

namespace elbowroom::trace {
namespace {

namespace fs = std::filesystem;

constexpr int kMostJobs = 100000;
constexpr auto kWriting = std::chrono::seconds(5);  // how long a file that another process just created may be empty
constexpr std::size_t kMostCommand = 200;

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

// The identity that job.json holds; empty where there is no such file.
std::string claimed_by(const std::string& path) {
  const auto deadline = std::chrono::steady_clock::now() + kWriting;
  while (access(path.c_str(), F_OK) == 0) {
    const auto line = nlohmann::json::parse(read_text(path), nullptr, false);
    if (line.is_object()) {
      return line.value("identity", "?");
    }
    if (std::chrono::steady_clock::now() > deadline) {
      return "?";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return "";
}

// By processes that did not ask for a folder (elbow_trace_start, an older version), or by what was left of a trace.
bool is_occupied(const std::string& folder) {
  for (const std::string& name : names_in(folder)) {
    if (name == "agreement" || (name.starts_with("rank-") && name.ends_with(".jsonl"))) {
      return true;
    }
  }
  return false;
}

std::string own_command() {
  std::string command = command_of("self");
  for (char& letter : command) {
    // Unsigned: whether a char can be negative depends on the processor.
    letter = static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
  }
  return command.substr(0, command.substr(0, kMostCommand).find_last_not_of(' ') + 1);
}

bool claim(const std::string& path, const std::string& identity, int ranks) {
  try {
    Line line("job");
    line.add("identity", identity).add("ranks", ranks).add("command", own_command());
    append_text(path, line.text() + "\n", true);
    return true;
  } catch (const Refusal& refusal) {
    if (refusal.code != EEXIST) {
      throw;
    }
    return false;
  }
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

std::string claim_folder(const std::string& directory, const std::string& identity, int ranks) {
  for (int number = 1; number <= kMostJobs; ++number) {
    const std::string folder = number == 1 ? directory : directory + "/job-" + std::to_string(number);
    std::error_code failed;
    fs::create_directories(folder, failed);
    if (failed) {
      refuse_file(folder, failed.value());
    }
    const std::string path = folder + "/job.json";
    std::string owner = claimed_by(path);
    if (owner.empty()) {
      const bool claimed = !is_occupied(folder) && claim(path, identity, ranks);
      owner = claimed ? identity : claimed_by(path);  // another process may have been quicker
    }
    if (owner == identity) {
      return folder;
    }
  }
  throw Refusal(EEXIST, directory + ": holds " + std::to_string(kMostJobs) + " jobs; name another directory");
}

}  // namespace elbowroom::trace
