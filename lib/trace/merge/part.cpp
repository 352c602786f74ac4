#include "trace/merge/part.hpp"

#include <algorithm>

namespace elbowroom::trace {

void Part::begin(const MergedJob& job) {
  job_ = &job;
  until_ = std::max(from_, std::min(until_, job.duration));
  spans_.emplace(job);
  open_.resize(job.threads.size());
  output_.begin(job);
}

void Part::event(const MergedEvent& event) {
  if (event.time > until_) {
    leave();
    return;
  }
  if (event.time >= from_) {
    enter();
    output_.event(event);
  }
  follow(event);
}

void Part::follow(const MergedEvent& event) {
  std::vector<MergedEvent>& open = open_[event.thread];
  if (event.kind == ELBOW_TRACE_BEGIN && spans_->begin(event)) {
    open.push_back(event);
  } else if (event.kind == ELBOW_TRACE_END) {
    const std::ptrdiff_t which = spans_->ending(event);
    spans_->end(event, which);
    if (which >= 0) {
      open.erase(open.end() - 1 - which);
    }
  } else if (event.kind == ELBOW_TRACE_COUNTER && !entered_) {
    counters_[{event.thread, event.type, event.small}] = event;
  } else if (event.kind == ELBOW_TRACE_REGION && !entered_) {
    regions_[job_->threads[event.thread].rank] = event;
  }
}

void Part::give(MergedEvent event, std::int64_t time, std::uint8_t kind) {
  event.time = time;
  event.kind = kind;
  event.flags |= kClipped;
  output_.event(event);
}

void Part::enter() {
  if (entered_) {
    return;
  }
  entered_ = true;
  for (const auto& [rank, region] : regions_) {
    if (region.small != 0) {
      give(region, from_, ELBOW_TRACE_REGION);
    }
  }
  for (const auto& [key, counter] : counters_) {
    give(counter, from_, ELBOW_TRACE_COUNTER);
  }
  for (const std::vector<MergedEvent>& open : open_) {
    for (const MergedEvent& begin : open) {
      give(begin, from_, ELBOW_TRACE_BEGIN);
    }
  }
}

void Part::leave() {
  if (left_) {
    return;
  }
  enter();
  left_ = true;
  for (const std::vector<MergedEvent>& open : open_) {
    for (auto begin = open.rbegin(); begin != open.rend(); ++begin) {
      give(*begin, until_, ELBOW_TRACE_END);
    }
  }
}

void Part::message(const MergedMessage& message) {
  const auto inside = [&](std::int64_t time) { return time >= from_ && time <= until_; };
  if (inside(message.sent) && inside(message.received)) {
    output_.message(message);
  }
}

void Part::gap(const MergedGap& gap) {
  if (gap.end >= from_ && gap.begin <= until_) {
    output_.gap({gap.thread, std::max(gap.begin, from_), std::min(gap.end, until_), gap.lost});
  }
}

void Part::end() {
  leave();
  output_.end();
}

}  // namespace elbowroom::trace
