// Folders of jobs, and folders in memory.

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "trace/job_identity.hpp"
#include "trace/memory_folder.hpp"
#include "trace/refusal.hpp"
#include "trace/test_trace.hpp"

namespace elbowroom::trace::tests {
namespace {

namespace fs = std::filesystem;

Variable variables(std::map<std::string, std::string> all) {
  return [all = std::move(all)](const char* name) {
    const auto entry = all.find(name);
    return entry == all.end() ? nullptr : entry->second.c_str();
  };
}

// A process that records ten events and is killed.
void run_killed(Traced& traced) {
  CHECK(WTERMSIG(traced.run([] {
          const auto* type = type_of("a", "i");
          for (std::uint64_t i = 0; i < 10; ++i) {
            elbow_trace_event(type, 0, i, 0);
          }
          kill(getpid(), SIGKILL);
        })) == SIGKILL);
}

std::vector<std::string> folders_in_memory(const fs::path& base) {
  std::vector<std::string> result;
  for (const auto& entry : fs::directory_iterator(base)) {
    if (entry.path().filename().string().starts_with("elbow-trace-")) {
      result.push_back(entry.path().filename().string());
    }
  }
  return result;
}

}  // namespace

TEST_CASE(
    "The first job gets the directory itself, the next ones folders inside it, and each process of a job the same") {
  Folder folder;
  const std::string directory = folder / "trace";
  CHECK(claim_folder(directory, "one", 2) == directory);
  CHECK(claim_folder(directory, "two", 4) == directory + "/job-2");
  CHECK(claim_folder(directory, "one", 2) == directory);
  CHECK(claim_folder(directory, "three", 1) == directory + "/job-3");
  CHECK(claim_folder(directory, "two", 4) == directory + "/job-2");
}

TEST_CASE("A directory that has a trace without a job's file is left alone") {
  Folder folder;
  const std::string directory = folder / "trace";
  fs::create_directories(directory);
  std::ofstream(directory + "/rank-00000.jsonl") << "{}\n";
  CHECK(claim_folder(directory, "one", 1) == directory + "/job-2");
}

TEST_CASE("The launcher's name of a job is that of PMIx, else of a step of Slurm, and not of Slurm's job script") {
  const auto named = [](std::map<std::string, std::string> all) { return launched_job(variables(std::move(all))); };
  CHECK(named({{"PMIX_NAMESPACE", "x@1"}, {"PMIX_RANK", "0"}, {"ELBOW_TRACE_JOB", "7"}}) == "job 7 x@1");
  CHECK(named({{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "3"}, {"SLURM_STEP_ID", "1"}}) == "job  3.1");
  CHECK(named({{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "3"}}).empty());
  CHECK(named({}).empty());
}

TEST_CASE("A process whose files are there already is not overwritten") {
  Traced traced;
  CHECK(traced.run([] { MUST(elbow_trace_stop(nullptr) == 0); }) == 0);
  const auto before = traced.lines("end");
  CHECK(traced.run_alone([&] {
    MUST(elbow_trace_start(&traced.settings) == -1 && errno == EEXIST);
    MUST(std::string(elbow_trace_error()).find("another process's trace") != std::string::npos);
  }) == 0);
  CHECK(traced.lines("end") == before);
  CHECK(folders_in_memory(traced.folder().path).empty());
}

TEST_CASE("What a killed process left in memory is gone at the next start, and its rings are beside its trace") {
  Traced traced;
  run_killed(traced);
  const auto left = folders_in_memory(traced.folder().path);
  REQUIRE(left.size() == 1);
  clear_dead(traced.folder().path.string(), 0);
  CHECK(folders_in_memory(traced.folder().path).empty());
  const auto bytes = bytes_of(traced.folder() / ("trace/" + left[0] + "/thread-00000.ring"));
  CHECK(contents_of(bytes).events.size() == 10);
}

TEST_CASE("What a killed process left in memory is removed where its trace is gone") {
  Traced traced;
  run_killed(traced);
  fs::remove_all(traced.folder() / "trace");
  clear_dead(traced.folder().path.string(), 0);
  CHECK(folders_in_memory(traced.folder().path).empty());
}

TEST_CASE("Rings of a process that lives stay, whoever starts beside it") {
  Folder folder;
  const MemoryFolder own(folder.path.string(), 7, "rank-00000", folder / "trace");
  clear_dead(folder.path.string(), 0);
  CHECK(folders_in_memory(folder.path).size() == 1);
}

}  // namespace elbowroom::trace::tests
