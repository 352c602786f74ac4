// The events of one ring file, block by block and in order of their stamps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/merge/sink.hpp"
#include "trace/reader.hpp"

namespace elbowroom::trace {

// Stamps that a ring's clock can have read.
struct StampRange {
  std::uint64_t least = 1;
  std::uint64_t most = ~0ULL;
};

// A file, or what is to be read of it.
struct RingPart {
  RingHeader header;
  std::string path;
  std::vector<RingRun> runs;
};

// An event that was interrupted by a signal handler's is behind those in the file, and is put in its place. A stamp that
// contradicts those around it becomes that of the event before; such events are marked: kMoved (sink.hpp) in `lap`, else 0. Memory: a window.
class RingEvents {
 public:
  RingEvents(std::vector<RingPart> parts, StampRange range, std::size_t window);

  // The next events; empty: there are no more. Valid until the next call.
  std::span<elbow_trace_slot> next();

  // Of what was read until now:
  std::uint64_t unfinished() const { return unfinished_; }
  std::uint64_t moved() const { return moved_; }
  const std::string& damage() const { return damage_; }

 private:
  void read_more();
  void take(std::size_t from, std::size_t got, std::uint64_t place, std::uint64_t number);
  void order();
  bool set_right(std::size_t i);
  void moves(std::size_t i, std::uint64_t time);
  std::size_t next_not_before(std::size_t i) const;

  std::vector<RingPart> parts_;
  StampRange range_;
  std::size_t window_;
  std::vector<elbow_trace_slot> slots_;
  std::size_t given_ = 0;    // those before it were handed out
  std::size_t ordered_ = 0;  // those before it are in order
  std::size_t count_ = 0;    // those before it were read
  std::size_t part_ = 0;
  std::size_t run_ = 0;
  std::uint64_t in_run_ = 0;
  std::uint64_t read_ = 0;  // slots until now
  std::uint64_t last_ = 0;  // stamp of the last one that is in order
  bool finished_ = false;
  std::uint64_t unfinished_ = 0;
  std::uint64_t moved_ = 0;
  std::uint64_t first_moved_ = 0;
  std::string damage_;
};

}  // namespace elbowroom::trace
