#include "trace/merge/ring_events.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace elbowroom::trace {
namespace {

// How many events of signal handlers may lie between an event's number and its stamp.
constexpr std::size_t kAhead = 64;

// As many bytes as there are, up to `count`. Opened for each window: there may be more threads than files one may open.
std::size_t read_at(const std::string& path, void* bytes, std::size_t count, std::uint64_t place, std::string& damage) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::size_t done = 0;
  while (file >= 0 && done < count) {
    const ssize_t now = pread(file, static_cast<char*>(bytes) + done, count - done, static_cast<off_t>(place + done));
    if (now < 0 && errno == EINTR) {
      continue;
    }
    if (now <= 0) {
      break;
    }
    done += static_cast<std::size_t>(now);
  }
  if (done < count) {
    damage = "cannot be read at byte " + std::to_string(place + done);
  }
  if (file >= 0) {
    close(file);
  }
  return done;
}

}  // namespace

RingEvents::RingEvents(std::vector<RingPart> parts, StampRange range, std::size_t window)
    : parts_(std::move(parts)), range_(range), window_(window) {
  std::uint64_t all = 1;
  for (const RingPart& part : parts_) {
    for (const RingRun& run : part.runs) {
      all += run.count;
    }
  }
  window_ = static_cast<std::size_t>(std::min<std::uint64_t>(window_, all));
  slots_.resize(window_ + kAhead);
  last_ = range_.least;
}

void RingEvents::read_more() {
  const auto begin = slots_.begin();
  std::copy(begin + static_cast<std::ptrdiff_t>(given_), begin + static_cast<std::ptrdiff_t>(count_), begin);
  count_ -= given_;
  ordered_ -= given_;
  given_ = 0;
  while (part_ < parts_.size() && (run_ == parts_[part_].runs.size() || in_run_ == parts_[part_].runs[run_].count)) {
    const bool last = run_ >= parts_[part_].runs.size() || run_ + 1 == parts_[part_].runs.size();
    run_ = last ? 0 : run_ + 1;
    part_ += last ? 1 : 0;
    in_run_ = 0;
  }
  if (part_ == parts_.size()) {
    finished_ = true;
    return;
  }
  const RingRun& run = parts_[part_].runs[run_];
  const std::size_t room = std::min<std::size_t>(slots_.size() - count_, window_);
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(run.count - in_run_, room));
  const std::uint64_t place = run.place + in_run_ * sizeof(elbow_trace_slot);
  const std::size_t bytes =
      read_at(parts_[part_].path, &slots_[count_], wanted * sizeof(elbow_trace_slot), place, damage_);
  const std::size_t got = bytes / sizeof(elbow_trace_slot);
  finished_ = got < wanted;
  take(count_, got, place, run.number + in_run_);
  in_run_ += got;
}

// Keeps those of the slots from `from` on that are whole.
void RingEvents::take(std::size_t from, std::size_t got, std::uint64_t place, std::uint64_t number) {
  for (std::size_t i = 0; i < got; ++i, ++read_) {
    elbow_trace_slot& slot = slots_[from + i];
    if (!is_whole(parts_[part_].header, slot, number + i)) {
      ++unfinished_;
      continue;
    }
    if (slot.kind > ELBOW_TRACE_LOST) {
      damage_ = "event " + std::to_string(number + i) + ", at byte " +
                std::to_string(place + i * sizeof(elbow_trace_slot)) + ", is of kind " + std::to_string(slot.kind) +
                ", which does not exist; the events before it were read";
      finished_ = true;
      return;
    }
    slot.lap = 0;
    slots_[count_++] = slot;
  }
}

void RingEvents::moves(std::size_t i, std::uint64_t time) {
  slots_[i].time = time;
  slots_[i].lap = kMoved;
  if (moved_++ == 0) {
    first_moved_ = read_ - (count_ - i);
  }
}

std::size_t RingEvents::next_not_before(std::size_t i) const {
  const std::size_t end = std::min(count_, i + kAhead);
  std::size_t j = i + 2;
  while (j < end && slots_[j].time < slots_[i].time) {
    ++j;
  }
  return j;
}

// The event's stamp is not between those before and after it. False where another event takes its place.
bool RingEvents::set_right(std::size_t i) {
  elbow_trace_slot& slot = slots_[i];
  if (slot.time < last_ || slot.time > range_.most) {
    moves(i, last_);
    return true;
  }
  if (slots_[i + 1].time < last_) {
    return true;  // the next one's own fault
  }
  const std::size_t j = next_not_before(i);
  if (j < std::min(count_, i + kAhead) || (finished_ && j == count_)) {
    const auto at = slots_.begin() + static_cast<std::ptrdiff_t>(i);
    std::rotate(at, at + 1, slots_.begin() + static_cast<std::ptrdiff_t>(j));
    return false;
  }
  moves(i, last_);
  return true;
}

void RingEvents::order() {
  const std::size_t end = finished_ ? count_ : std::max(ordered_, count_ - std::min(count_, kAhead));
  while (ordered_ < end) {
    const std::uint64_t time = slots_[ordered_].time;
    const bool in_order =
        time >= last_ && time <= range_.most && (ordered_ + 1 == count_ || time <= slots_[ordered_ + 1].time);
    if (in_order || set_right(ordered_)) {
      last_ = slots_[ordered_].time;
      ++ordered_;
    }
  }
}

std::span<elbow_trace_slot> RingEvents::next() {
  given_ = ordered_;
  while (given_ == ordered_ && !(finished_ && ordered_ == count_)) {
    if (!finished_) {
      read_more();
    }
    order();
  }
  if (finished_ && ordered_ == count_ && moved_ > 0 && damage_.find("clock goes back") == std::string::npos) {
    damage_ += (damage_.empty() ? "" : "; ") + ("the clock goes back or jumps at " + std::to_string(moved_) +
                                                " of the events, first at event " + std::to_string(first_moved_));
  }
  return {slots_.data() + given_, ordered_ - given_};
}

}  // namespace elbowroom::trace
