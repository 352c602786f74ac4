// One thread's events with their times, a window at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/merge/opened.hpp"

namespace elbowroom::trace {

class Cursor {
 public:
  Cursor(const ThreadSource& source, const RankTimes& times, std::int64_t start, std::size_t window);

  // False: there are no more events. The others speak of the present one.
  bool has() const { return at_ < slots_.size(); }
  const elbow_trace_slot& slot() const { return slots_[at_]; }
  const Stamped& stamped() const { return stamped_[at_]; }
  // ns since the job's start; never less than before.
  std::int64_t time() const { return stamped_[at_].time; }
  void advance() {
    if (++at_ == slots_.size()) {
      refill();
    }
  }

 private:
  void refill();

  RingEvents events_;
  const RankTimes* times_;
  HostClock clock_;
  std::int64_t start_;
  std::int64_t last_;
  std::span<elbow_trace_slot> slots_;
  std::vector<Stamped> stamped_;
  std::size_t at_ = 0;
};

}  // namespace elbowroom::trace
