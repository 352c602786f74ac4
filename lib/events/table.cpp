#include "events/table.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace elbowroom::events {

void Columns::add(const RawEvent& event) {
  kind_.push_back(event.kind);
  lane_.push_back(event.lane);
  start_.push_back(event.start);
  duration_.push_back(event.duration);
  if (correlated_) {
    correlation_.push_back(event.correlation);
    external_.push_back(event.external);
  }
  const auto kind = static_cast<std::size_t>(event.kind);
  if (kind >= last_lane_.size()) {
    last_lane_.resize(kind + 1, -1);
  }
  if (last_lane_[kind] != event.lane) {
    last_lane_[kind] = event.lane;
    if (known_pairs_.insert(std::uint64_t{kind} << 32 | static_cast<std::uint32_t>(event.lane)).second) {
      pairs_.push_back(list({std::to_string(event.kind), std::to_string(event.lane)}));
    }
  }
}

void Columns::write(int file) {
  const auto count = static_cast<std::uint32_t>(kind_.size()) | (correlated_ || kind_.empty() ? 0 : kUncorrelated);
  write_all(file, &count, sizeof count);
  const auto column = [&](auto& values) {
    write_all(file, values.data(), values.size() * sizeof values[0]);
    values.clear();
  };
  column(kind_);
  column(lane_);
  column(start_);
  column(duration_);
  column(correlation_);
  column(external_);
}

bool OpenEvents::end(const RawEvent& end, RawEvent& whole) {
  const auto at = open_.find(end.thread);
  if (at == open_.end() || at->second.empty()) {
    return false;
  }
  whole = at->second.back();
  at->second.pop_back();
  whole.duration = end.start - whole.start;
  return whole.has_start && end.has_start;
}

std::size_t OpenEvents::waiting() const {
  std::size_t count = 0;
  for (const auto& [thread, events] : open_) {
    count += events.size();
  }
  return count;
}

void write_all(int file, const void* data, std::size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t count = ::write(file, next, size);
    if (count < 0 && errno != EINTR) {
      throw std::runtime_error(std::string("stdout: ") + std::strerror(errno));
    }
    next += count > 0 ? count : 0;
    size -= count > 0 ? static_cast<std::size_t>(count) : 0;
  }
}

}  // namespace elbowroom::events
