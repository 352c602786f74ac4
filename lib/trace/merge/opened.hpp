// A trace that was opened: its job as the outputs get it, and where each thread's events come from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trace/merge/files.hpp"
#include "trace/merge/ring_events.hpp"
#include "trace/merge/sink.hpp"
#include "trace/merge/times.hpp"

namespace elbowroom::trace {

// A thread's files, clock, and what a first reading of all of them told.
struct ThreadSource {
  std::vector<RingPart> parts;
  std::string name;  // of the file, for a person
  HostClock clock;
  StampRange stamps;
  bool overwritten = false;  // what is lost is before the first event, else behind the last
  std::uint64_t read = 0;    // events
  std::uint64_t marked = 0;  // lost in between, by ELBOW_TRACE_LOST
  std::uint64_t first_stamp = 0;
  std::uint64_t last_stamp = 0;
};

struct OpenedRank {
  RankTimes times;
  std::optional<LinesEnd> end;
  std::vector<std::uint32_t> types;  // merged number of each of the rank's, or kNoType (type_table.hpp)
  bool killed = false;
};

struct OpenedTrace {
  std::string directory;
  MergedJob job;
  std::vector<OpenedRank> ranks;      // as job.ranks
  std::vector<ThreadSource> threads;  // as job.threads
  std::vector<Damage> damage;
  std::vector<std::string> texts;  // bytes that job.texts point into
  bool has_one_ended = false;      // messages whose other end is not in the trace
};

// Reads every file once, so that what is kept, lost and damaged is known from the start. Raises Refused as find_files.
std::unique_ptr<OpenedTrace> open_trace(const std::string& directory);

// How many events a thread's cursor holds, so that all together stay within some tens of MB.
std::size_t window_of(std::size_t threads);

}  // namespace elbowroom::trace
