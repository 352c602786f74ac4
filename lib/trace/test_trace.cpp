#include "trace/test_trace.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace elbowroom::trace::tests {

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "elbow-trace-test-XXXXXX").string();
  path = mkdtemp(name.data());
}

Folder::~Folder() { std::filesystem::remove_all(path); }

Traced::Traced() : directory_(folder_ / "trace"), memory_(folder_.path.string()) {
  settings.directory = directory_.c_str();
  settings.memory = memory_.c_str();
}

int Traced::run_alone(const std::function<void()>& program) {
  std::fflush(stdout);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    program();
    std::exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

int Traced::run(const std::function<void()>& program) {
  return run_alone([&] {
    MUST(elbow_trace_start(&settings) == 0);
    program();
  });
}

std::vector<std::byte> Traced::ring_bytes(int thread) const {
  const std::string number = std::to_string(thread);
  return bytes_of(in_directory("rank-00000.thread-" + std::string(5 - number.size(), '0') + number + ".ring"));
}

RingContents Traced::ring(int thread) const {
  bytes_ = ring_bytes(thread);
  return contents_of(bytes_);
}

std::vector<nlohmann::json> Traced::lines(const std::string& record) const {
  std::ifstream file(in_directory("rank-00000.jsonl"));
  std::vector<nlohmann::json> result;
  for (std::string line; std::getline(file, line);) {
    const auto event = nlohmann::json::parse(line);
    if (event.at("record") == record) {
      result.push_back(event);
    }
  }
  return result;
}

void must(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "in the child: %s; last error: %s\n", what, elbow_trace_error());
    _exit(1);
  }
}

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file.good(), path);
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

RingContents contents_of(const std::vector<std::byte>& bytes) {
  RingContents contents;
  REQUIRE(read_ring(bytes, contents));
  return contents;
}

const elbow_trace_type* type_of(const char* name, const char* first) {
  const auto* type = elbow_trace_type_new(name, elbow_trace_category("c"), nullptr, first, nullptr);
  MUST(type != nullptr);
  return type;
}

elbow_trace_summary stopped() {
  auto summary = c_interface::sized<elbow_trace_summary>();
  MUST(elbow_trace_stop(&summary) == 0);
  MUST(summary.recorded == summary.kept + summary.lost);
  return summary;
}

std::uint64_t marked(const RingContents& contents) {
  std::uint64_t missing = 0;
  for (const elbow_trace_slot& slot : contents.events) {
    missing += slot.kind == ELBOW_TRACE_LOST ? slot.first : 0;
  }
  return missing;
}

std::vector<elbow_trace_slot> kept(const RingContents& contents) {
  std::vector<elbow_trace_slot> events;
  std::copy_if(contents.events.begin(), contents.events.end(), std::back_inserter(events),
               [](const elbow_trace_slot& slot) { return slot.kind != ELBOW_TRACE_LOST; });
  return events;
}

}  // namespace elbowroom::trace::tests
