// What the simulation keeps: stations, sources, lines under way.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulate/channel.hpp"
#include "simulate/latencies.hpp"
#include "simulate/node.hpp"
#include "simulate/wheel.hpp"

namespace elbowroom::simulate {

// Time that a station was in use between two instants.
class Use {
 public:
  Use(Time from, Time to) : from_(from), to_(to) {}
  void add(Time start, Time end) {
    if (start >= from_ && end <= to_) {
      used_ += end - start;
    } else {
      used_ += std::max<Time>(0, std::min(end, to_) - std::max(start, from_));
    }
  }
  double share() const { return static_cast<double>(used_) / static_cast<double>(to_ - from_); }

 private:
  Time from_, to_, used_ = 0;
};

// Serves lines in the order in which they come; `pass` must be called in the order of time.
class Passage {
 public:
  explicit Passage(const Use& measured) : use(measured) {}

  // When a line that comes `now` and takes `cost` has passed.
  Time pass(Time now, Time cost) {
    const Time start = std::max(now, free_);
    free_ = start + cost;
    use.add(start, free_);
    return free_;
  }

  Use use;

 private:
  Time free_ = 0;
};

// Lines that wait, first come, first served; linked through their events.
class WaitingLine {
 public:
  bool empty() const { return head_ == kNone; }
  Id first() const { return head_; }

  void append(Wheel& wheel, Id id) {
    wheel.event(id).next = kNone;
    if (head_ == kNone) {
      head_ = id;
    } else {
      wheel.event(tail_).next = id;
    }
    tail_ = id;
  }

  Id take(Wheel& wheel) {
    const Id id = head_;
    head_ = wheel.event(id).next;
    return id;
  }

 private:
  Id head_ = kNone;
  Id tail_ = kNone;
};

// A link between sockets, one direction: no more lines than credits are between its entry and the queue they go to.
struct Link {
  Passage passage;
  int credits;
  WaitingLine waiting;
};

enum class Entry : std::uint8_t { uplink, link, root };
inline constexpr std::size_t kEntries = 3;

struct Controlled {
  Channel channel;
  Use use;
  std::array<WaitingLine, kEntries> waiting;  // all in the first one unless entries take turns
  std::uint32_t waiting_lines = 0;
  std::size_t turn = 0;
  Time free_at = 0;    // of the bus
  bool woken = false;  // the bus goes on by itself at `free_at`
};

enum class Stage : std::uint8_t { issue, link, arrival, way_back, back, bus, message };

struct Line {
  Time started = 0;
  Row row;
  std::uint32_t source = 0;
  std::uint32_t channel = 0;
  std::uint32_t thread = 0;
  Stage stage = Stage::issue;
  Access access = Access::read;
};

// Where a sender is in one of the arrays that it walks through: line of the piece in a channel; channel, and how many
// were visited this time round; how many times round in the row. Counted up, since divisions would cost more than all
// else that is done for a line.
struct Position {
  std::uint64_t number = 0;  // of the row
  Row row;
  int line = 0;
  std::uint32_t channel = 0;
  std::uint32_t visited = 0;
  std::uint32_t round = 0;
};

// A communication thread: what is left of its message.
struct Thread {
  int to_issue = 0;
  int to_come = 0;
  int accesses = 0;
  Id event = kNone;
};

// One core or one device, with what is the same for all its lines.
struct Sender {
  std::size_t group = 0;
  Entry entry = Entry::uplink;
  std::size_t station = 0;  // uplink or root
  std::size_t link = 0;     // to the data's socket, and back
  std::size_t link_back = 0;
  bool remote = false;
  std::size_t first_channel = 0;
  Time interval = 0;
  Time think = 0;
  Way read, write;
  Time uplink_read = 0, uplink_write = 0;
  std::int32_t memory_read = 0, memory_write = 0;
  Time free = 0;
  std::vector<Access> pattern;
  std::size_t step = 0;
  std::vector<Position> positions;  // one for each step of the pattern
  bool counted = true;
  std::vector<Thread> threads;  // of messages; empty: lines without end
  std::vector<Id> resting;      // lines that no thread has use for at the moment
  std::size_t turn = 0;
};

struct Group {
  Latencies latencies;
  std::uint64_t messages = 0;
};

}  // namespace elbowroom::simulate
