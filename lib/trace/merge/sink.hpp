// A merged trace, in the order an output gets it: the job, its events by time, the messages whose two ends are known.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "elbowroom/trace.h"

namespace elbowroom::trace {

// A type of events in the numbering of the whole job: the same name, category and fields are the same type, whatever
// number a process gave it.
struct MergedType {
  std::string name;
  std::uint32_t category = 0;         // index in MergedJob::categories
  std::array<std::string, 3> fields;  // of `small`, `first` and `second`; empty: not used
};

// A comparison of a process's clock with the reference, ns: at `local`, the reference was between `low` and `high` further.
struct MergedSync {
  std::int64_t local = 0;
  std::int64_t offset = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;
  bool used = true;  // false: rejected as an outlier
};

struct MergedRank {
  int rank = 0;
  std::int64_t pid = 0;
  std::string host;
  bool there = true;     // false: no file of this process was found
  bool ended = true;     // false: the process was killed
  bool counter = false;  // stamps are the processor's counter: ns = start_ns + (stamp - start_ticks) * scale / 2^32
  std::uint64_t start_ticks = 0;
  std::int64_t start_ns = 0;
  std::uint64_t scale = 0;
  std::vector<MergedSync> syncs;
  std::vector<MergedSync> turns;  // made up: two in each stretch in which the clock jumped, between which times turn
};

struct MergedThread {
  std::uint32_t rank = 0;  // index in MergedJob::ranks
  int thread = 0;          // its number in the process, in order of their making
  std::int64_t tid = 0;    // the system's
  std::string name;
  std::uint64_t recorded = 0;  // kept + lost
  std::uint64_t kept = 0;
  std::uint64_t lost = 0;
  std::string damage;  // empty: the file is whole
};

// A descriptive record; `text` is valid until Sink::end has returned.
struct MergedText {
  std::uint32_t thread = 0;
  std::uint32_t type = 0;
  std::uint64_t key = 0;
  std::string_view text;
};

struct MergedJob {
  std::uint64_t job = 0;
  std::int64_t start = 0;     // of the reference's clock, ns: where times of events count from
  std::int64_t duration = 0;  // to the last event, ns
  std::uint32_t size = 0;     // processes, as they said; `ranks` may leave out the last ones, of which there is no file
  std::vector<std::string> categories;
  std::vector<MergedType> types;
  std::vector<MergedRank> ranks;      // by number, up to the last one that has files
  std::vector<MergedThread> threads;  // by rank and number
  std::vector<MergedText> texts;
  std::vector<std::string> warnings;  // sentences: what is missing, damaged or not to be trusted
};

enum EventFlag : std::uint8_t {
  kTachyon = 1,        // a message that arrives before it left
  kSuspect = 2,        // the same, but within what the clocks' error leaves possible; or faster than the pair's floor
  kUnmatched = 4,      // a message whose other end is not in the trace
  kUnsynced = 8,       // the process has no sync point: its time has no known relation to that of others
  kExtrapolated = 16,  // outside the first and last sync point
  kMoved = 32,         // its thread's clock went back or jumped: the time is that of the event before
  kMismatched = 64,    // a message whose two ends have different sizes: they belong to different messages
  kClipped = 128       // not recorded: stands where the part that is shown cuts an interval, or repeats a state
};

struct MergedEvent {
  std::int64_t time = 0;       // ns since MergedJob::start on the reference's clock; never less than the event before
  std::int64_t error = -1;     // ns, how wrong `time` is at most; -1: not known
  std::uint64_t stamp = 0;     // as it was recorded
  std::uint64_t first = 0;     // of a message: communicator << 32 | peer (the number of the other process in the job)
  std::uint64_t second = 0;    // of a message: its bytes
  std::uint64_t message = 0;   // of a message: from 1, the same at both ends; else 0
  std::uint32_t sequence = 0;  // of a numbered message: which one of its kind; else 0
  std::uint32_t thread = 0;    // index in MergedJob::threads
  std::uint32_t type = 0;      // index in MergedJob::types
  std::uint32_t small = 0;     // of a message: its tag
  std::uint8_t kind = 0;       // ELBOW_TRACE_EVENT ...
  std::uint8_t flags = 0;      // EventFlag
};

// Told once both ends are known, after the second of their events.
struct MergedMessage {
  std::uint64_t message = 0;
  std::int64_t sent = 0;
  std::int64_t received = 0;
  std::uint64_t bytes = 0;
  std::uint32_t from = 0;  // threads
  std::uint32_t to = 0;
  std::uint32_t communicator = 0;
  std::int32_t tag = 0;
  std::uint8_t flags = 0;
};

// From `begin` to `end` this thread's events are missing (`lost` of them), or the recorder was busy with them (lost 0).
struct MergedGap {
  std::uint32_t thread = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::uint64_t lost = 0;
};

// An output. What cannot be written is an exception (std::runtime_error with a sentence); nothing half-written stays: a
// file appears under its name in `end`.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void begin(const MergedJob& job) = 0;
  virtual void event(const MergedEvent& event) = 0;
  virtual void message(const MergedMessage& message) = 0;
  virtual void gap(const MergedGap& gap) = 0;
  virtual void end() = 0;
};

}  // namespace elbowroom::trace
