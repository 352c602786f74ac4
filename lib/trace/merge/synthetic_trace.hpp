// Writes traces as a recorder does, from what a test or a benchmark says that happened: any number of ranks, any stamps, any
// damage. Events go to the disk as they come, so that a trace may be larger than memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trace/ring_file.hpp"

namespace elbowroom::trace {

// The clock of a rank: its stamps are ns, or ticks of a counter.
struct SyntheticClock {
  bool counter = false;
  std::uint64_t start_ticks = 0;
  std::int64_t start_ns = 0;
  std::uint64_t scale = 0;  // ns a tick x 2^32
};

// One ring file that grows with its events.
class RingWriter {
 public:
  // `capacity` 0: as many events as come. The file is made now.
  RingWriter(std::string path, const RingHeader& header);
  ~RingWriter();
  RingWriter(const RingWriter&) = delete;
  RingWriter& operator=(const RingWriter&) = delete;

  void add(const elbow_trace_slot& slot);
  void text(std::uint16_t type, std::uint64_t key, const std::string& text);
  // Counts events that were not kept: behind a full ring, or before a flight recorder's oldest.
  void lose(std::uint64_t events) { lost_ += events; }
  std::uint64_t kept() const { return kept_; }
  std::uint64_t lost() const { return lost_; }
  // The records, then the header, as it is after elbow_trace_stop, or as a process that is killed leaves it.
  void finish(bool ended);

 private:
  void flush();

  RingHeader header_;
  std::string path_;
  int file_ = -1;
  std::uint64_t kept_ = 0;
  std::uint64_t lost_ = 0;
  std::vector<elbow_trace_slot> waiting_;
  std::string texts_;
  std::uint64_t text_count_ = 0;
};

class SyntheticTrace {
 public:
  // All ranks have the types and categories that are made here, under the same numbers; `job` is theirs, too.
  explicit SyntheticTrace(std::string directory, int ranks = 1, std::uint64_t job = 7);
  ~SyntheticTrace();
  SyntheticTrace(const SyntheticTrace&) = delete;
  SyntheticTrace& operator=(const SyntheticTrace&) = delete;

  // Before the rank's first thread. A rank that is left out has no files; one that is killed leaves its rings in
  // `memory`, a folder that is made, and no last line.
  void clock(int rank, const SyntheticClock& clock);
  void leave_out(int rank);
  void kill(int rank, const std::string& memory);
  void job_of(int rank, std::uint64_t job);

  int category(const std::string& name);
  std::uint16_t type(const std::string& name, int category, const std::array<std::string, 3>& fields = {});

  // The number of the new thread in its rank.
  int thread(int rank, const std::string& name, int policy = ELBOW_TRACE_STOP);
  void add(int rank, int thread, std::uint64_t stamp, std::uint16_t type, std::uint8_t kind, std::uint32_t small = 0,
           std::uint64_t first = 0, std::uint64_t second = 0);
  // A message between two ranks' threads; `sequence` 0: not numbered.
  void send(int rank, int thread, std::uint64_t stamp, std::uint16_t type, int peer, std::uint64_t bytes, int tag = 0,
            std::uint32_t communicator = 0, std::uint32_t sequence = 0);
  void receive(int rank, int thread, std::uint64_t stamp, std::uint16_t type, int peer, std::uint64_t bytes,
               int tag = 0, std::uint32_t communicator = 0, std::uint32_t sequence = 0);
  void lose(int rank, int thread, std::uint64_t events);
  void text(int rank, int thread, std::uint16_t type, std::uint64_t key, const std::string& text);
  void sync(int rank, std::int64_t local, std::int64_t offset, std::int64_t low, std::int64_t high);

  // Closes all files; nothing is added after it.
  void write();

  std::string ring(int rank, int thread) const;
  std::string lines(int rank) const;

 private:
  struct Rank {
    SyntheticClock clock;
    bool there = true;
    std::uint64_t job = 0;
    std::string memory;  // of a rank that was killed
    std::vector<std::unique_ptr<RingWriter>> threads;
    std::string lines;  // lines besides categories and types
  };

  RingHeader header(int rank, const std::string& name, int policy) const;
  std::string first_line(int rank) const;
  std::string last_line(int rank) const;

  std::string directory_;
  std::vector<Rank> ranks_;
  std::string definitions_;  // lines of categories and types
  int categories_ = 0;
  std::uint16_t types_ = 0;
};

}  // namespace elbowroom::trace
