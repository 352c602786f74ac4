// Histograms over time in fixed memory: windows of one width, which doubles by merging neighbours where time goes on beyond the
// last one. Not safe for threads: the caller locks.
#pragma once

#include "profile/layout.hpp"

namespace elbowroom::profile {

class Windows {
 public:
  Windows() = default;
  // Over `header.windows` zeroed windows at `cells`; the header has their width, start and count.
  Windows(Header* header, elbow_profile_window* cells);

  // Adds a record: its time if it was spent inside a call, and its bytes.
  void add(const elbow_profile_record& record) {
    if (record.begin_ns >= begin_ && record.end_ns < end_) [[likely]] {
      const std::uint64_t inside = (record.flags & ELBOW_PROFILE_INSIDE) != 0 ? record.end_ns - record.begin_ns : 0;
      add_time(*current_, record.kind, inside);
      current_->calls += (record.flags & ELBOW_PROFILE_INSIDE) != 0 ? 1 : 0;
      add_bytes(*current_, *current_, record);
    } else {
      add_slowly(record);
    }
  }

 private:
  static bool waits(std::uint8_t kind) {
    return kind == ELBOW_PROFILE_RECEIVE || kind == ELBOW_PROFILE_COMPLETION || kind == ELBOW_PROFILE_BARRIER;
  }
  static void add_time(elbow_profile_window& window, std::uint8_t kind, std::uint64_t ns) {
    window.mpi_ns += ns;
    window.wait_ns += waits(kind) ? ns : 0;
  }
  static void add_bytes(elbow_profile_window& at_begin, elbow_profile_window& at_end,
                        const elbow_profile_record& record);
  void add_slowly(elbow_profile_record record);
  std::uint64_t place(std::uint64_t ns) const;
  void reach(std::uint64_t ns);
  void merge();

  Header* header_ = nullptr;
  elbow_profile_window* cells_ = nullptr;
  // The window that was used last, and its time.
  elbow_profile_window* current_ = nullptr;
  std::uint64_t begin_ = 1;
  std::uint64_t end_ = 0;
};

inline void Windows::add_bytes(elbow_profile_window& at_begin, elbow_profile_window& at_end,
                               const elbow_profile_record& record) {
  const bool between = (record.flags & ELBOW_PROFILE_BETWEEN) != 0;
  switch (record.kind) {
    case ELBOW_PROFILE_SEND:
    case ELBOW_PROFILE_EXCHANGE:
    case ELBOW_PROFILE_SEND_LATER: at_begin.messages += record.peer >= 0 ? 1 : 0; [[fallthrough]];
    case ELBOW_PROFILE_COLLECTIVE:
    case ELBOW_PROFILE_COLLECTIVE_LATER:
    case ELBOW_PROFILE_ONE_SIDED: (between ? at_begin.sent_between : at_begin.sent_inside) += record.bytes; break;
    case ELBOW_PROFILE_RECEIVE:
    case ELBOW_PROFILE_RECEIVE_LATER:
      (between ? at_end.received_between : at_end.received_inside) += record.bytes;
      break;
    default: break;
  }
}

}  // namespace elbowroom::profile
