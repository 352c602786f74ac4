#include "trace/merge/merge.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <vector>

#include "trace/merge/opened.hpp"
#include "trace/merge/type_table.hpp"
#include "trace/outputs/ending.hpp"

namespace elbowroom::trace {
namespace {

// One thread's events with their times, a window at a time.
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

// Which thread is next: a heap of their next events' times.
class Order {
 public:
  struct Entry {
    std::int64_t time;
    std::uint32_t thread;
    bool operator<(const Entry& other) const { return time != other.time ? time < other.time : thread < other.thread; }
  };

  void add(Entry entry) {
    entries_.push_back(entry);
    std::push_heap(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return b < a; });
  }
  bool empty() const { return entries_.empty(); }
  const Entry& first() const { return entries_.front(); }
  // The one after the first.
  Entry second() const {
    constexpr Entry kNone{std::numeric_limits<std::int64_t>::max(), ~0U};
    if (entries_.size() < 3) {
      return entries_.size() == 2 ? entries_[1] : kNone;
    }
    return std::min(entries_[1], entries_[2]);
  }
  // The first one goes on at another time.
  void replace(std::int64_t time) {
    entries_.front().time = time;
    sink_down();
  }
  void remove_first() {
    entries_.front() = entries_.back();
    entries_.pop_back();
    if (!entries_.empty()) {
      sink_down();
    }
  }

 private:
  void sink_down() {
    const std::size_t count = entries_.size();
    const Entry moved = entries_.front();
    std::size_t at = 0;
    for (std::size_t child = 1; child < count; child = 2 * at + 1) {
      child += child + 1 < count && entries_[child + 1] < entries_[child] ? 1 : 0;
      if (!(entries_[child] < moved)) {
        break;
      }
      entries_[at] = entries_[child];
      at = child;
    }
    entries_[at] = moved;
  }

  std::vector<Entry> entries_;
};

class Merger {
 public:
  Merger(const OpenedTrace& trace, Sink* sink, Merged& merged) : trace_(trace), sink_(sink), merged_(merged) {
    const std::size_t window = window_of(trace.threads.size());
    for (std::size_t i = 0; i < trace.threads.size(); ++i) {
      cursors_.emplace_back(trace.threads[i], trace.ranks[trace.job.threads[i].rank].times, trace.job.start, window);
      if (cursors_.back().has()) {
        order_.add({cursors_.back().time(), static_cast<std::uint32_t>(i)});
      }
    }
    before_.assign(cursors_.size(), 0);
  }

  void run() {
    for (std::size_t i = 0; i < cursors_.size(); ++i) {
      lost_before(i);
    }
    while (!order_.empty()) {
      const std::uint32_t thread = order_.first().thread;
      Cursor& cursor = cursors_[thread];
      const Order::Entry next = order_.second();
      check_end_requested();
      do {
        take(thread, cursor);
        cursor.advance();
      } while (cursor.has() && Order::Entry{cursor.time(), thread} < next);
      if (cursor.has()) {
        order_.replace(cursor.time());
      } else {
        order_.remove_first();
        lost_behind(thread);
      }
    }
    merged_.messages.finish();
  }

 private:
  void gap(std::uint32_t thread, std::int64_t begin, std::int64_t end, std::uint64_t lost) {
    if (lost > 0) {
      merged_.messages.lose(trace_.job.threads[thread].rank);
    }
    if (sink_ != nullptr) {
      sink_->gap({thread, begin, std::max(begin, end), lost});
    }
  }

  // Lost and not marked in between.
  std::uint64_t unmarked(std::size_t thread) const {
    const std::uint64_t lost = trace_.job.threads[thread].lost;
    return lost - std::min(lost, trace_.threads[thread].marked);
  }

  void lost_before(std::size_t i) {
    if (trace_.threads[i].overwritten && unmarked(i) > 0) {
      const std::int64_t end = cursors_[i].has() ? cursors_[i].time() : trace_.job.duration;
      gap(static_cast<std::uint32_t>(i), 0, end, unmarked(i));
    }
  }

  void lost_behind(std::uint32_t thread) {
    if (!trace_.threads[thread].overwritten && unmarked(thread) > 0) {
      gap(thread, before_[thread], trace_.job.duration, unmarked(thread));
    }
  }

  void take(std::uint32_t thread, const Cursor& cursor) {
    const elbow_trace_slot& slot = cursor.slot();
    const Stamped& stamped = cursor.stamped();
    if (slot.kind == ELBOW_TRACE_LOST) {
      gap(thread, before_[thread], stamped.time, slot.first);
      before_[thread] = stamped.time;
      return;
    }
    before_[thread] = stamped.time;
    merged_.monotone = merged_.monotone && stamped.time >= last_;
    last_ = stamped.time;
    const std::vector<std::uint32_t>& types = trace_.ranks[trace_.job.threads[thread].rank].types;
    if (slot.type >= types.size() || types[slot.type] == kNoType) {
      ++merged_.appeared;
      return;
    }
    MergedEvent event;
    event.time = stamped.time;
    event.error = stamped.error;
    event.stamp = slot.time;
    event.first = slot.first;
    event.second = slot.second;
    event.thread = thread;
    event.type = types[slot.type];
    event.small = slot.small;
    event.kind = slot.kind;
    event.flags = stamped.flags;
    deliver(event);
  }

  void deliver(MergedEvent& event) {
    ++merged_.events;
    merged_.unsynced += (event.flags & kUnsynced) != 0 ? 1 : 0;
    const bool known = event.error >= 0 && merged_.worst_error >= 0;
    merged_.worst_error = known ? std::max(merged_.worst_error, event.error) : -1;
    const bool ends_message = event.kind == ELBOW_TRACE_SEND || event.kind == ELBOW_TRACE_RECEIVE;
    const MergedMessage* message = ends_message ? merged_.messages.see(event) : nullptr;
    merged_.statistics.see(event);
    if (sink_ != nullptr) {
      sink_->event(event);
      if (message != nullptr) {
        sink_->message(*message);
      }
    }
  }

  const OpenedTrace& trace_;
  Sink* sink_;
  Merged& merged_;
  std::deque<Cursor> cursors_;
  Order order_;
  std::vector<std::int64_t> before_;  // of each thread, the time of its last event
  std::int64_t last_ = 0;
};

}  // namespace

Merged::Merged(const OpenedTrace& trace, std::size_t bins)
    : messages(trace), statistics(trace.job, trace.job.duration, bins) {}

bool Merged::changed(const OpenedTrace& trace) const {
  std::uint64_t kept = 0;
  for (const MergedThread& thread : trace.job.threads) {
    kept += thread.kept;
  }
  return appeared > 0 || events != kept;
}

void merge(const OpenedTrace& trace, Sink* sink, Merged& merged) {
  if (sink != nullptr && trace.has_one_ended) {
    // A send goes to the output long before it is known that its receive never comes.
    Merged before(trace, 0);
    Merger(trace, nullptr, before).run();
    merged.messages.mark(before.messages.one_ended());
  }
  Merger merger(trace, sink, merged);
  if (sink != nullptr) {
    sink->begin(trace.job);
  }
  merger.run();
  if (sink != nullptr) {
    sink->end();
  }
}

}  // namespace elbowroom::trace
