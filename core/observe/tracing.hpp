// What the probe records of itself when it is asked to (`measure --trace`): a few events for each chunk, batch and phase,
// none inside what is timed. Off, each costs a load and a branch.
#pragma once

#include <cstdint>
#include <string>

#include "elbowroom/trace.h"

namespace elbowroom {

enum class Traced { repetition, settling, alone, messages, together, sleep, announcement, count };

// Begins to record into a folder; `job` is the same for all ranks. Throws std::runtime_error.
void start_tracing(const std::string& directory, int rank, int ranks, std::uint64_t job);
// Ends it, and moves what was recorded into the folder. Nothing when nothing is recorded. Throws std::runtime_error.
void stop_tracing();
bool tracing();

// The row of the calling thread; only its first name counts.
void trace_thread(const std::string& name);
// The type of what computes or communicates under that name (a kernel, a pattern), made when it is new.
const elbow_trace_type* traced_chunk(const std::string& kernel);
const elbow_trace_type* traced_batch(const std::string& pattern);
const elbow_trace_type* traced(Traced what);
// Says which point the repetition of this number is of.
void trace_point(std::uint64_t repetition, const std::string& point);

// From its beginning to its end.
class TracedSpan {
 public:
  TracedSpan(const elbow_trace_type* type, std::uint64_t first, std::uint64_t second = 0)
      : type_(type), first_(first), second_(second) {
    elbow_trace_begin(type_, 0, first_, second_);
  }
  ~TracedSpan() { elbow_trace_end(type_, 0, first_, second_); }
  TracedSpan(const TracedSpan&) = delete;
  TracedSpan& operator=(const TracedSpan&) = delete;

 private:
  const elbow_trace_type* type_;
  std::uint64_t first_;
  std::uint64_t second_;
};

}  // namespace elbowroom
