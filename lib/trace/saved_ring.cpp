#include "trace/saved_ring.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

#include "trace/refusal.hpp"

namespace elbowroom::trace {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kBatch = 1U << 12;  // slots: 128 KiB
// A slot that is not written so long after those behind it never will be: handlers of signals lost it between them.
constexpr auto kPatience = std::chrono::seconds(1);

struct File {
  int number;
  explicit File(int opened, const std::string& path) : number(opened) {
    if (number < 0) {
      refuse_file(path, errno);
    }
  }
  ~File() { close(number); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

void write_at(int file, const void* bytes, std::size_t count, std::uint64_t place, const std::string& path) {
  const char* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = pwrite(file, from, count, static_cast<off_t>(place));
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      refuse_file(path, written == 0 ? ENOSPC : errno);
    }
    from += written;
    place += static_cast<std::uint64_t>(written);
    count -= static_cast<std::size_t>(written);
  }
}

}  // namespace

SavedRing::SavedRing(Ring& ring, std::string path, std::uint16_t lost_type)
    : ring_(ring), front_(ring.header()), path_(std::move(path)), lost_type_(lost_type) {
  front_.header_bytes = kHeaderBytes;
  front_.texts_at = 0;
  front_.in_order = 1;
  front_.ring.slots = nullptr;
  front_.flush = nullptr;
}

// Each event may bring a mark with it.
SavedRing::Batch::Batch() { slots.reserve(kBatch); }

bool SavedRing::Batch::full() const { return slots.size() + 2 > kBatch; }

void SavedRing::add(Batch& batch, const elbow_trace_slot& slot) const {
  if (batch.missing > 0) {
    batch.slots.push_back({slot.time, lost_type_, ELBOW_TRACE_LOST, 0, 0, batch.missing, 0});
    batch.marks += 1;
    batch.missing = 0;
  }
  batch.slots.push_back(slot);
}

// What is missing behind the last event is marked with the time now.
void SavedRing::end(Batch& batch) const {
  if (batch.missing > 0) {
    elbow_trace_slot last{};
    last.time = stamp(ring_.header().ring.counter != 0);
    add(batch, last);
    batch.slots.pop_back();
  }
}

void SavedRing::write_batch(Batch& batch, int file) {
  std::size_t types = by_type_.size();
  for (const elbow_trace_slot& slot : batch.slots) {
    types = std::max<std::size_t>(types, slot.type + 1U);
  }
  by_type_.resize(types);  // may throw: nothing is written and counted by then
  write_at(file, batch.slots.data(), batch.slots.size() * sizeof(elbow_trace_slot),
           kHeaderBytes + stored_ * sizeof(elbow_trace_slot), path_);
  for (const elbow_trace_slot& slot : batch.slots) {
    by_type_[slot.type] += slot.kind != ELBOW_TRACE_LOST ? 1 : 0;
  }
  stored_ += batch.slots.size();
  marks_ += batch.marks;
  missing_ = batch.missing;
  batch.slots.clear();
  batch.marks = 0;
}

void SavedRing::write_header(int file, bool ended) {
  RingHeader header = front_;
  const std::string_view texts = ring_.texts();
  header.capacity = ring_.header().capacity;
  header.stored = stored_;
  header.marks = marks_;
  header.text_bytes = header.text_stored = ended ? texts.size() : 0;
  header.texts = __atomic_load_n(&ring_.header().texts, __ATOMIC_RELAXED);
  header.texts_lost = __atomic_load_n(&ring_.header().texts_lost, __ATOMIC_RELAXED);
  header.ended = ended ? 1 : 0;
  header.drained = next_;
  header.ring.recorded = ended ? recorded_ : next_;
  char front[kHeaderBytes] = {};
  std::memcpy(front, &header, sizeof header);
  if (ended) {
    write_at(file, texts.data(), texts.size(), kHeaderBytes + stored_ * sizeof(elbow_trace_slot), path_);
  }
  write_at(file, front, sizeof front, 0, path_);
}

bool SavedRing::is_due() {
  const std::uint64_t recorded = ring_.recorded();
  const std::uint64_t waiting = recorded - std::min(recorded, next_);
  fullest_ = std::max(fullest_, waiting);
  const RingHeader& header = ring_.header();
  const std::uint64_t limit = __atomic_load_n(&header.ring.limit, __ATOMIC_ACQUIRE);
  return waiting >= header.capacity / 4 || (recorded > limit && next_ < limit);
}

bool SavedRing::is_stuck(std::uint64_t number, std::uint64_t recorded) {
  if (recorded <= number + 1) {
    return false;
  }
  if (stuck_at_ != number) {
    stuck_at_ = number;
    stuck_since_ = steady_clock::now();
  }
  return steady_clock::now() - stuck_since_ > kPatience;
}

// Adds events from `next_` on to the batch until it is full, and returns the number of the first one that was not added. `all`:
// those that are not whole by the deadline are missing.
std::uint64_t SavedRing::take_waiting(Batch& batch, Deadline deadline, bool all) {
  const RingHeader& header = ring_.header();
  const std::uint64_t recorded = all ? recorded_ : ring_.recorded();
  const std::uint64_t limit = __atomic_load_n(&header.ring.limit, __ATOMIC_ACQUIRE);
  const std::uint64_t lost_from = __atomic_load_n(&header.lost_from, __ATOMIC_RELAXED);
  const std::uint64_t lost_to = __atomic_load_n(&header.lost_to, __ATOMIC_RELAXED);
  const std::uint64_t end = std::min(recorded, limit);
  std::uint64_t number = next_;
  while (number < end && !batch.full()) {
    if (number >= lost_from && number < lost_to) {
      batch.missing += std::min(lost_to, end) - number;
      number = std::min(lost_to, end);
      continue;
    }
    elbow_trace_slot slot;
    if (ring_.copy(number, slot)) {
      add(batch, slot);
    } else if (all && steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      continue;
    } else if (all || is_stuck(number, recorded)) {
      ++batch.missing;
    } else {
      break;
    }
    ++number;
  }
  return number;
}

void SavedRing::drain() {
  Batch batch;
  batch.missing = missing_;
  const File file(open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (stored_ == 0 ? O_TRUNC : 0), 0644), path_);
  // A thread that records as fast as this must not keep it from the others.
  const std::uint64_t enough = next_ + ring_.header().capacity;
  while (next_ < enough && take_chunk(batch, {}, false, file.number)) {
    write_header(file.number, false);
    __atomic_store_n(&ring_.header().drained, next_, __ATOMIC_RELEASE);
  }
}

// Whether there was any.
bool SavedRing::take_chunk(Batch& batch, Deadline deadline, bool all, int file) {
  const std::uint64_t number = take_waiting(batch, deadline, all);
  if (number == next_) {
    return false;
  }
  write_batch(batch, file);
  next_ = number;
  return true;
}

// The numbers that the ring may hold.
std::vector<Extent> SavedRing::extents() const {
  const RingHeader& header = ring_.header();
  const std::uint64_t capacity = header.capacity;
  if (header.policy == ELBOW_TRACE_GROW) {
    return ring_.extents();
  }
  return {header.policy == ELBOW_TRACE_OVERWRITE ? Extent{recorded_ - std::min(recorded_, capacity), recorded_}
                                                 : Extent{0, capacity}};
}

void SavedRing::take_extent(Extent extent, std::uint64_t& next, Batch& batch, Deadline deadline, int file) {
  batch.missing += std::min(extent.from, recorded_) - std::min(next, std::min(extent.from, recorded_));
  const std::uint64_t end = std::min(extent.to, recorded_);
  for (std::uint64_t number = extent.from; number < end; ++number) {
    elbow_trace_slot slot;
    bool whole = ring_.copy(number, slot);
    while (!whole && steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      whole = ring_.copy(number, slot);
    }
    if (whole) {
      add(batch, slot);
    } else {
      ++batch.missing;
    }
    if (batch.full()) {
      write_batch(batch, file);
    }
  }
  next = std::max(next, end);
}

void SavedRing::write_whole(Deadline deadline, int file) {
  Batch batch;
  std::uint64_t next = 0;
  if (ring_.header().policy == ELBOW_TRACE_DRAIN) {
    batch.missing = missing_;
    while (take_chunk(batch, deadline, true, file)) {
    }
    next = next_;
  } else {
    stored_ = marks_ = missing_ = 0;
    by_type_.clear();
    for (const Extent& extent : extents()) {
      take_extent(extent, next, batch, deadline, file);
    }
  }
  batch.missing += recorded_ - std::min(next, recorded_);
  end(batch);
  write_batch(batch, file);
  next_ = recorded_;
  write_header(file, true);
}

void SavedRing::finish(Deadline deadline) {
  const bool drained = ring_.header().policy == ELBOW_TRACE_DRAIN;
  ring_.close();
  recorded_ = ring_.recorded();
  // A ring as large as all its events is never flushed.
  const bool waits = drained && ring_.header().flush == nullptr;
  fullest_ = std::max(fullest_, waits ? recorded_ - std::min(recorded_, next_) : recorded_);
  const std::string path = drained ? path_ : path_ + ".tmp";
  try {
    const int truncated = drained && stored_ > 0 ? 0 : O_TRUNC;
    const File file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | truncated, 0644), path);
    write_whole(deadline, file.number);
  } catch (...) {
    if (!drained) {
      unlink(path.c_str());
    }
    throw;
  }
  if (!drained && rename(path.c_str(), path_.c_str()) != 0) {
    refuse_file(path_, errno);
  }
  last_ = ring_.header();
  finished_ = true;
}

}  // namespace elbowroom::trace
