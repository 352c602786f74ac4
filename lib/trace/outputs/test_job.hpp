// A small job for tests of outputs: two ranks of one thread, tasks, messages, a counter.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "trace/merge/sink.hpp"

namespace elbowroom::trace {

// Types 0 "solve", 1 "factor", 2 "dependency" (task), 3 "MPI_Send", 4 "MPI_Recv" (mpi), 5 "power" (energy); a thread each.
inline MergedJob test_job(int ranks = 2) {
  MergedJob job;
  job.job = 0xFEDCBA9876543210U;
  job.start = 1'000'000'000'000;
  job.categories = {"trace", "task", "mpi", "energy"};
  job.types = {{"solve", 1, {"block", "task", "cells"}},
               {"factor", 1, {"", "task", ""}},
               {"dependency", 1, {"", "task", "waits"}},
               {"MPI_Send", 2, {"", "", ""}},
               {"MPI_Recv", 2, {"", "", ""}},
               {"power", 3, {"socket", "watt", ""}}};
  for (int rank = 0; rank < ranks; ++rank) {
    MergedRank one;
    one.rank = rank;
    one.pid = 100 + rank;
    one.host = "node" + std::to_string(rank);
    one.syncs = {{5, 1000, 990, 1010, true}};
    job.ranks.push_back(one);
    MergedThread thread;
    thread.rank = static_cast<std::uint32_t>(rank);
    thread.tid = 200 + rank;
    thread.name = "worker";
    job.threads.push_back(thread);
  }
  return job;
}

inline MergedEvent test_event(std::int64_t time, std::uint32_t thread, std::uint32_t type, std::uint8_t kind,
                              std::uint64_t first = 0, std::uint64_t second = 0) {
  MergedEvent event;
  event.time = time;
  event.error = 7;
  event.thread = thread;
  event.type = type;
  event.kind = kind;
  event.first = first;
  event.second = second;
  return event;
}

// A send at `sent` and its receive: both events, then the message.
inline void test_message(Sink& sink, std::uint64_t number, std::int64_t sent, std::uint32_t from, std::int64_t received,
                         std::uint32_t to, std::uint64_t bytes) {
  MergedEvent send = test_event(sent, from, 3, ELBOW_TRACE_SEND, 7ULL << 32 | to, bytes);
  send.message = number;
  MergedEvent receive = test_event(received, to, 4, ELBOW_TRACE_RECEIVE, 7ULL << 32 | from, bytes);
  receive.message = number;
  sink.event(send);
  sink.event(receive);
  sink.message({number, sent, received, bytes, from, to, 7, 3, 0});
}

// A folder of a test's own, gone after it.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "outputs-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  bool empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::filesystem::path path_;
};

inline std::string read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace elbowroom::trace
