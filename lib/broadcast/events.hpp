// The events that a program of the C interface has not taken yet, by operation. What a program cannot ask for any more is
// forgotten: a million operations that are only waited for leave nothing.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "elbowroom/broadcast.h"

namespace elbowroom::broadcast {

struct Notice {
  int kind = 0;
  std::uint64_t operation = 0;
  int rank = -1;
  std::string text;
  bool ends_wait = true;  // of ELBOW_BROADCAST_STALLED
};

class Events {
 public:
  // An operation has begun. They are numbered from 1 on.
  void begin(std::uint64_t operation, bool is_receive) {
    last_ = operation;
    open_[operation].is_receive = is_receive;
  }

  void add(Notice notice) {
    Open& open = open_[notice.operation];
    const bool failed = notice.kind == ELBOW_BROADCAST_FAILED;
    const bool over = failed || notice.kind == ELBOW_BROADCAST_RELEASED;
    open.received = open.received || notice.kind == ELBOW_BROADCAST_RECEIVED;
    if (notice.operation != 0) open.over = open.over || over;
    if (failed) failed_.insert(notice.operation);
    const bool dropped =
        open.awaited && (notice.kind == ELBOW_BROADCAST_RECEIVED || notice.kind == ELBOW_BROADCAST_RELEASED);
    const std::uint64_t operation = notice.operation;
    if (!dropped) {
      queue_.push_back(std::move(notice));
      open.queued.push_back(std::prev(queue_.end()));
    }
    forget(operation);
  }

  std::optional<Notice> next() {
    if (queue_.empty()) return std::nullopt;
    return remove(queue_.begin());
  }

  bool empty() const { return queue_.empty(); }

  // The operation's first event of that kind, which next() then does not return.
  std::optional<Notice> take(std::uint64_t operation, int kind) {
    const auto open = open_.find(operation);
    if (open == open_.end()) return std::nullopt;
    for (const auto place : open->second.queued) {
      if (place->kind == kind && place->ends_wait) return remove(place);
    }
    return std::nullopt;
  }

  bool known(std::uint64_t operation) const { return operation > 0 && operation <= last_; }
  bool failed(std::uint64_t operation) const { return failed_.count(operation) != 0; }
  bool is_receive(std::uint64_t operation) const {
    const auto open = open_.find(operation);
    return open != open_.end() && open->second.is_receive;
  }

  // Whether the operation had that event; if so, next() returns neither this one nor its others.
  bool had(std::uint64_t operation, int kind) {
    const auto open = open_.find(operation);
    if (open == open_.end()) return true;
    if (!open->second.over && (kind == ELBOW_BROADCAST_RELEASED || !open->second.received)) return false;
    open->second.awaited = true;
    while (take(operation, ELBOW_BROADCAST_RECEIVED)) {
    }
    while (take(operation, ELBOW_BROADCAST_RELEASED)) {
    }
    forget(operation);
    return true;
  }

  std::size_t remembered() const { return open_.size() + queue_.size(); }

 private:
  using Queue = std::list<Notice>;
  // An operation that is not over, or whose events were not taken.
  struct Open {
    bool is_receive = false;
    bool received = false;
    bool over = false;
    bool awaited = false;
    std::vector<Queue::iterator> queued;
  };

  Notice remove(Queue::iterator place) {
    Notice notice = std::move(*place);
    std::erase(open_[notice.operation].queued, place);
    queue_.erase(place);
    forget(notice.operation);
    return notice;
  }

  void forget(std::uint64_t operation) {
    const auto open = open_.find(operation);
    if (open == open_.end() || !open->second.queued.empty()) return;
    if (open->second.over || operation == 0) open_.erase(open);
  }

  Queue queue_;
  std::unordered_map<std::uint64_t, Open> open_;
  std::unordered_set<std::uint64_t> failed_;
  std::uint64_t last_ = 0;
};

}  // namespace elbowroom::broadcast
