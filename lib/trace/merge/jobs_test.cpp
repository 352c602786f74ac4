// Directories of several jobs, and processes that end after MPI_Finalize.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "trace/merge/files.hpp"
#include "trace/merge/report.hpp"
#include "trace/merge/synthetic_trace.hpp"
#include "trace/merge/test_collected.hpp"
#include "trace/outputs/test_job.hpp"

using namespace elbowroom::trace;

namespace {

void make_job(const std::string& directory) {
  SyntheticTrace trace{directory};
  const auto type = trace.type("step", trace.category("work"), {"", "i", ""});
  trace.thread(0, "main");
  trace.add(0, 0, 1000, type, ELBOW_TRACE_EVENT, 0, 0);
  trace.write();
}

}  // namespace

TEST_CASE("A directory of several jobs is refused with their names, and each is read by its own") {
  TestFolder folder;
  const std::string directory = folder.file("trace");
  make_job(directory + "/job-1");
  make_job(directory + "/job-2");
  std::string sentence;
  try {
    find_files(directory);
  } catch (const Refused& refused) {
    sentence = refused.what();
  }
  CHECK(sentence.find("holds several jobs; name one of " + directory + "/job-1, " + directory + "/job-2") !=
        std::string::npos);
  CHECK(find_files(directory + "/job-2").by_rank.size() == 1);
}

TEST_CASE("A first job beside others is read alone, and a warning names these") {
  TestFolder folder;
  const std::string directory = folder.file("trace");
  make_job(directory);
  make_job(directory + "/job-2");
  const TraceFiles files = find_files(directory);
  CHECK(files.by_rank.size() == 1);
  REQUIRE(files.warnings.size() == 1);
  CHECK(files.warnings[0] == "this is the first of several jobs; the others are in " + directory + "/job-2");
}

TEST_CASE("A process that ended after MPI_Finalize without an end was not killed") {
  const RankLines lines = read_lines("{\"record\":\"finalised\"}\n", "rank-00000.jsonl");
  CHECK(lines.finalised);
  CHECK_FALSE(lines.end.has_value());
}
