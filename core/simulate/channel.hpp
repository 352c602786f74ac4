// One channel of a memory controller: bounded queues of reads and writes, banks with open rows, a bus that is turned
// round between reading and writing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulate/node.hpp"
#include "simulate/wheel.hpp"

namespace elbowroom::simulate {

// A row of a bank; rows of different arrays never have the same number.
struct Row {
  std::uint32_t number = 0;
  std::uint32_t bank = 0;
};

// A line in a queue. A write that was accepted needs nobody to wait for it: its `request` is kNone.
struct QueuedLine {
  Time ready = 0;  // when its row is open
  std::int32_t cost = 0;
  Id request = kNone;
};

class LineQueue {
 public:
  explicit LineQueue(int capacity) : lines_(static_cast<std::size_t>(capacity)) {}

  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == lines_.size(); }
  std::size_t size() const { return size_; }

  void push(const QueuedLine& line) { lines_[wrapped(first_ + size_++)] = line; }

  // The first of the oldest `lookahead` lines whose row is open; if none is, the one whose row is open first.
  QueuedLine take(std::size_t lookahead, Time now) {
    std::size_t chosen = 0;
    const std::size_t window = std::min(lookahead, size_);
    for (std::size_t i = 0; i < window; ++i) {
      const Time ready = at(i).ready;
      if (ready <= now) {
        chosen = i;
        break;
      }
      if (ready < at(chosen).ready) chosen = i;
    }
    const QueuedLine line = at(chosen);
    for (std::size_t i = chosen; i > 0; --i) at(i) = at(i - 1);
    first_ = wrapped(first_ + 1);
    --size_;
    return line;
  }

 private:
  std::size_t wrapped(std::size_t i) const { return i < lines_.size() ? i : i - lines_.size(); }
  QueuedLine& at(std::size_t i) { return lines_[wrapped(first_ + i)]; }

  std::vector<QueuedLine> lines_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

class Channel {
 public:
  explicit Channel(const Node& node)
      : node_(node), reads_(node.read_queue), writes_(node.write_queue), banks_(static_cast<std::size_t>(node.banks)) {}

  bool room(bool write) const { return write ? !writes_.full() : !reads_.full(); }
  bool has_work() const { return !reads_.empty() || !writes_.empty(); }

  // Takes a line into its queue. Its row is opened at once if its bank has another one open; until that is done, lines
  // of the row that was open before are still served (first ready, first come, first served: Rixner et al., Memory access
  // scheduling, ISCA 2000).
  void admit(bool write, Id request, const Row& row, std::int32_t cost, Time now) {
    Bank& bank = banks_[row.bank];
    Time ready = bank.open_at;
    if (bank.row != row.number) {
      if (bank.row_before == row.number && now < bank.open_at) {
        ready = bank.open_before;
      } else {
        bank.row_before = bank.row;
        bank.open_before = bank.open_at;
        bank.row = row.number;
        ready = bank.open_at = std::max(bank.open_at, now) + node_.row;
      }
    }
    (write ? writes_ : reads_).push({ready, cost, request});
  }

  struct Served {
    Id request;
    Time end;
  };

  // The next line, which has the bus from now on until `end`, the wait for its row and for the bus to turn round
  // included. Only while has_work().
  Served serve(Time now) {
    Time start = now;
    if (turns()) {
      writing_ = !writing_;
      left_ = node_.write_batch;
      start += node_.turnaround;
    }
    const QueuedLine line = (writing_ ? writes_ : reads_).take(static_cast<std::size_t>(node_.lookahead), start);
    if (left_ > 0) --left_;
    return {line.request, std::max(start, line.ready) + line.cost};
  }

 private:
  struct Bank {
    Time open_at = 0;
    Time open_before = 0;
    std::uint32_t row = ~std::uint32_t{0};
    std::uint32_t row_before = ~std::uint32_t{0};
  };

  // Reads go first until a batch of writes has gathered; then a whole batch is written, and as many reads are served
  // before the next one.
  bool turns() const {
    if (writing_) return !reads_.empty() && (left_ == 0 || writes_.empty());
    if (writes_.empty()) return false;
    return reads_.empty() || (left_ == 0 && writes_.size() >= static_cast<std::size_t>(node_.write_batch));
  }

  const Node& node_;
  LineQueue reads_;
  LineQueue writes_;
  std::vector<Bank> banks_;
  bool writing_ = false;
  int left_ = 0;  // of the batch
};

}  // namespace elbowroom::simulate
