// A timing wheel: events in order of time, those of one time in the order they were scheduled. Both schedule and next
// cost a few nanoseconds, since nearly every event lies less than a microsecond ahead; the few others wait in a heap.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

namespace elbowroom::simulate {

using Time = std::int64_t;  // picoseconds
using Id = std::uint32_t;   // of an event

inline constexpr Id kNone = std::numeric_limits<Id>::max();

// Every event has a fixed number and is scheduled at most once at a time. While it is not, its `next` belongs to the
// list that it waits in, if any.
struct Event {
  Time at = 0;
  Id next = kNone;
};

class Wheel {
 public:
  explicit Wheel(std::size_t events) : events_(events) { slots_.fill(kNone); }

  Event& event(Id id) { return events_[id]; }
  Time now() const { return now_; }

  // `at` must not be before now().
  void schedule(Id id, Time at) {
    events_[id].at = at;
    if ((at >> kSlotBits) >= base_ + kSlots) {
      later_.push({at, order_++, id});
      next_later_ = later_.top().at >> kSlotBits;
    } else {
      insert(id, at);
    }
  }

  // The earliest event, which is taken out and whose time is now(); kNone when there is none.
  Id next() {
    if (count_ == 0) {
      if (later_.empty()) return kNone;
      base_ = next_later_;
      migrate();
    }
    const std::size_t slot = first_occupied();
    base_ += static_cast<Time>((slot - static_cast<std::size_t>(base_)) & kMask);
    const Id id = slots_[slot];
    slots_[slot] = events_[id].next;
    if (slots_[slot] == kNone) occupied_[slot >> 6] &= ~(std::uint64_t{1} << (slot & 63));
    --count_;
    now_ = events_[id].at;
    if (next_later_ < base_ + kSlots) migrate();
    return id;
  }

 private:
  // A slot is 64 ps: in a busy node less than one event lies in it, and there is nothing to search.
  static constexpr int kSlotBits = 6;
  static constexpr Time kSlots = 16384;  // 1.05 us in all
  static constexpr std::size_t kMask = kSlots - 1;

  struct Later {
    Time at;
    std::uint64_t order;
    Id id;
    bool operator<(const Later& other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  // A slot's events are few and kept in order.
  void insert(Id id, Time at) {
    const auto slot = static_cast<std::size_t>(at >> kSlotBits) & kMask;
    Id* place = &slots_[slot];
    while (*place != kNone && events_[*place].at <= at) place = &events_[*place].next;
    events_[id].next = *place;
    *place = id;
    occupied_[slot >> 6] |= std::uint64_t{1} << (slot & 63);
    ++count_;
  }

  void migrate() {
    while (!later_.empty() && (later_.top().at >> kSlotBits) < base_ + kSlots) {
      insert(later_.top().id, later_.top().at);
      later_.pop();
    }
    next_later_ = later_.empty() ? std::numeric_limits<Time>::max() : later_.top().at >> kSlotBits;
  }

  std::size_t first_occupied() const {
    const std::size_t from = static_cast<std::size_t>(base_) & kMask;
    std::size_t word = from >> 6;
    std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (from & 63));
    while (bits == 0) {
      word = (word + 1) & (occupied_.size() - 1);
      bits = occupied_[word];
    }
    return (word << 6) + static_cast<std::size_t>(std::countr_zero(bits));
  }

  std::vector<Event> events_;
  std::array<Id, kSlots> slots_;
  std::array<std::uint64_t, kSlots / 64> occupied_{};
  std::priority_queue<Later> later_;
  Time next_later_ = std::numeric_limits<Time>::max();  // slot of the first event that waits in the heap
  Time now_ = 0;
  Time base_ = 0;  // slot of now_
  std::size_t count_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace elbowroom::simulate
