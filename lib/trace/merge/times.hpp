// From what a thread's clock read to the time of the reference, and how wrong that may be.
//
// Thesis of P. Swartvagher (2022), section 3.4.2: figures 3.17 and 3.18; the errors are those of lib/clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/merge/ranks.hpp"
#include "trace/merge/ring_events.hpp"
#include "trace/merge/sink.hpp"

namespace elbowroom::trace {

// An event's time of the reference, ns; `error` -1: not known. `flags`: kUnsynced, kExtrapolated.
struct Stamped {
  std::int64_t time = 0;
  std::int64_t error = -1;
  std::uint8_t flags = 0;
};

class RankTimes {
 public:
  RankTimes() = default;
  // A job of one rank needs no comparison of clocks.
  RankTimes(const std::vector<LinesSync>& syncs, bool alone);

  std::int64_t local(const HostClock& clock, std::uint64_t stamp) const {
    return clock.counter ? clock.at(stamp) : static_cast<std::int64_t>(stamp);
  }
  Stamped at(std::int64_t local) const;
  // Moves all times: of a rank whose clock has no known relation to the others'.
  void shift(std::int64_t by) { shift_ += by; }

  bool unsynced() const { return unsynced_; }
  const clock::Correction& correction() const { return correction_; }
  // Those given, and which of them the correction uses.
  const std::vector<MergedSync>& syncs() const { return syncs_; }
  // The correction's knots that are no sync points.
  std::vector<MergedSync> turns() const;

 private:
  clock::Correction correction_;
  std::vector<MergedSync> syncs_;
  std::int64_t shift_ = 0;
  bool unsynced_ = false;
  bool alone_ = true;
};

// The stamps that a clock can have read between its start and `end_ns` (0: not known), so that no time overflows.
StampRange stamps_of(const HostClock& clock, std::int64_t end_ns);

}  // namespace elbowroom::trace
