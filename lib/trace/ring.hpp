// One thread's events while they are recorded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "elbowroom/trace.h"
#include "trace/ring_file.hpp"

namespace elbowroom::trace {

// Of files that cannot be written; the errno says why.
[[noreturn]] void refuse_file(const std::string& path, int code);

// The time now, as a slot has it: the processor's counter, or ns of CLOCK_MONOTONIC_RAW.
std::uint64_t stamp(bool counter);

// Numbers from `from` to `to`, that excluded.
struct Extent {
  std::uint64_t from;
  std::uint64_t to;
};

// A file in memory, mapped as long as its thread lives, which may write at any time. It stays when the process is killed, and
// is removed when its contents are saved.
class Ring {
 public:
  // A ring of GROW has address space for kMostGrown events, and memory for those of the header's capacity.
  Ring(std::string path, const RingHeader& header);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  static constexpr std::uint64_t kMostGrown = 1ULL << 29;

  RingHeader& header() { return *header_; }
  const RingHeader& header() const { return *header_; }
  std::uint64_t recorded() const { return __atomic_load_n(&header_->ring.recorded, __ATOMIC_ACQUIRE); }
  // Events from the moment on are not heard.
  void close();
  // The event of that number; false where it is not whole, be it that it is written now, or lost.
  bool copy(std::uint64_t number, elbow_trace_slot& slot) const;

  // By its own thread, in a ring with room: an event whose time is over.
  void add_past(const elbow_trace_slot& event);
  bool add_text(std::uint16_t type, std::uint64_t key, std::string_view text);
  std::string_view texts() const;

  // GROW: makes room for `more` events beyond those recorded, and returns the bytes that it took. Refusal where memory is full.
  // One thread at a time.
  std::size_t grow(std::uint64_t more);
  std::uint64_t room() const { return header_->present - std::min(recorded(), header_->present); }
  // GROW: numbers that there was ever memory for.
  const std::vector<Extent>& extents() const { return extents_; }

  void remove_file();
  // Of a thread that has ended, whose events are saved: the file and its memory are gone, and only close and remove_file may
  // be called.
  void release();

 private:
  elbow_trace_slot* slots() const;
  void reserve(int file, const RingHeader& header);

  std::string path_;
  RingHeader* header_ = nullptr;
  std::size_t mapped_ = 0;
  std::vector<Extent> extents_;
};

}  // namespace elbowroom::trace
