#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "trace/job_identity.hpp"
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
  std::string command = read_text("/proc/self/cmdline");
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
