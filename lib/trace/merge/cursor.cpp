#include "trace/merge/cursor.hpp"

#include <algorithm>
#include <limits>

namespace elbowroom::trace {

Cursor::Cursor(const ThreadSource& source, const RankTimes& times, std::int64_t start, std::size_t window)
    : events_(source.parts, source.stamps, window),
      times_(&times),
      clock_(source.clock),
      start_(start),
      last_(std::numeric_limits<std::int64_t>::min()) {
  refill();
}

void Cursor::refill() {
  slots_ = events_.next();
  at_ = 0;
  stamped_.resize(slots_.size());
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Stamped stamped = times_->at(times_->local(clock_, slots_[i].time));
    stamped.time = std::max(stamped.time - start_, last_);
    if (slots_[i].lap == kMoved) {
      stamped.error = -1;
      stamped.flags |= kMoved;
    }
    last_ = stamped.time;
    stamped_[i] = stamped;
  }
}

}  // namespace elbowroom::trace
