#include "profile/windows.hpp"

#include <algorithm>
#include <atomic>

namespace elbowroom::profile {
namespace {

void join(elbow_profile_window& to, const elbow_profile_window& from) {
  to.mpi_ns += from.mpi_ns;
  to.wait_ns += from.wait_ns;
  to.calls += from.calls;
  to.sent_inside += from.sent_inside;
  to.sent_between += from.sent_between;
  to.received_inside += from.received_inside;
  to.received_between += from.received_between;
  to.messages += from.messages;
}

}  // namespace

Windows::Windows(Header* header, elbow_profile_window* cells) : header_(header), cells_(cells) {}

// What was before the start counts at the start.
std::uint64_t Windows::place(std::uint64_t ns) const {
  return ns <= header_->start_ns ? 0 : (ns - header_->start_ns) / header_->window_ns;
}

// Halves the number of windows. A process that is killed meanwhile leaves `merging` set.
void Windows::merge() {
  header_->merging = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const std::uint32_t half = header_->windows / 2;
  for (std::uint32_t i = 0; i < half; ++i) {
    elbow_profile_window both = cells_[2 * i];
    join(both, cells_[2 * i + 1]);
    cells_[i] = both;
  }
  std::fill(cells_ + half, cells_ + header_->windows, elbow_profile_window{});
  header_->window_ns *= 2;
  header_->window_count = (header_->window_count + 1) / 2;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  header_->merging = 0;
}

// Makes the window of `ns` the current one.
void Windows::reach(std::uint64_t ns) {
  while (place(ns) >= header_->windows) {
    merge();
  }
  const std::uint64_t index = place(ns);
  header_->window_count = std::max(header_->window_count, static_cast<std::uint32_t>(index + 1));
  current_ = cells_ + index;
  begin_ = header_->start_ns + index * header_->window_ns;
  end_ = begin_ + header_->window_ns;
}

void Windows::add_slowly(elbow_profile_record record) {
  reach(record.end_ns);
  const std::uint64_t first = place(record.begin_ns);
  const std::uint64_t last = place(record.end_ns);
  add_bytes(cells_[first], cells_[last], record);
  if ((record.flags & ELBOW_PROFILE_INSIDE) == 0) {
    return;
  }
  current_->calls += 1;
  for (std::uint64_t i = first; i <= last; ++i) {
    const std::uint64_t from = header_->start_ns + i * header_->window_ns;
    const std::uint64_t begin = std::max(record.begin_ns, from);
    const std::uint64_t end = std::min(record.end_ns, from + header_->window_ns);
    add_time(cells_[i], record.kind, end > begin ? end - begin : 0);
  }
}

}  // namespace elbowroom::profile
