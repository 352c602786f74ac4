// The file in the directory that one thread's events end up in: in order, with marks where some are missing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/ring.hpp"

namespace elbowroom::trace {

using Deadline = std::chrono::steady_clock::time_point;

class SavedRing {
 public:
  // `path` is made when the first events are written; `lost_type` is the type of marks.
  SavedRing(Ring& ring, std::string path, std::uint16_t lost_type);

  // DRAIN, while events are recorded: there is a whole chunk to write, or the ring is full.
  bool is_due();
  // Writes what there is, a chunk at a time, and leaves its slots to the thread. Refusal, bad_alloc: what was not written stays
  // in the ring.
  void drain();
  // The rest, whole or not at all. Events that are just being written are waited for, until `deadline`; then they are lost.
  void finish(Deadline deadline);

  bool finished() const { return finished_; }
  std::uint64_t recorded() const { return recorded_; }
  std::uint64_t kept() const { return stored_ - marks_; }
  // The most events that were waiting at once, or would have been.
  std::uint64_t fullest() const { return fullest_; }
  // When it is finished: what the ring had held. The ring itself may be gone.
  const RingHeader& last() const { return last_; }
  // How many events of each type are kept.
  const std::vector<std::uint64_t>& by_type() const { return by_type_; }

 private:
  // Slots that are to be written, and events missing before the next one. Its memory is taken once: kBatch slots.
  struct Batch {
    Batch();
    bool full() const;
    std::vector<elbow_trace_slot> slots;
    std::uint64_t marks = 0;
    std::uint64_t missing = 0;
  };
  void add(Batch& batch, const elbow_trace_slot& slot) const;
  void end(Batch& batch) const;
  void take_extent(Extent extent, std::uint64_t& next, Batch& batch, Deadline deadline, int file);
  std::uint64_t take_waiting(Batch& batch, Deadline deadline, bool all);
  bool take_chunk(Batch& batch, Deadline deadline, bool all, int file);
  bool is_stuck(std::uint64_t number, std::uint64_t recorded);
  void write_batch(Batch& batch, int file);
  void write_header(int file, bool ended);
  void write_whole(Deadline deadline, int file);
  std::vector<Extent> extents() const;

  Ring& ring_;
  RingHeader front_;  // as it was before its thread began
  RingHeader last_{};
  std::string path_;
  std::uint16_t lost_type_;
  std::uint64_t next_ = 0;  // DRAIN: number of the first event that was not taken
  std::uint64_t recorded_ = 0;
  std::uint64_t stored_ = 0;
  std::uint64_t marks_ = 0;
  std::uint64_t missing_ = 0;  // known to be, and not marked yet
  std::uint64_t fullest_ = 0;
  std::uint64_t stuck_at_ = ~0ULL;
  Deadline stuck_since_{};
  std::vector<std::uint64_t> by_type_;
  bool finished_ = false;
};

}  // namespace elbowroom::trace
