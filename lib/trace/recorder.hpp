// One process's trace: its categories and types, its threads' rings, and what is written when it ends.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/host_clock.hpp"
#include "elbowroom/trace.h"
#include "trace/helper.hpp"
#include "trace/lines.hpp"
#include "trace/memory_folder.hpp"
#include "trace/refusal.hpp"
#include "trace/ring.hpp"
#include "trace/saved_ring.hpp"

namespace elbowroom::trace {

constexpr int kOwnCategory = 63;  // of the library's own events

// `what`00003
std::string numbered(const char* what, int number);
// thread-00003.ring
std::string ring_name(int thread);

// A summary for a person.
std::string described(const elbow_trace_summary& summary);

// What recording one event takes, ns: one that is kept, and one that is lost since the ring is full.
struct EventCost {
  double kept = 0;
  double lost = 0;
};

// What a ring of FLUSH calls: writes the full ring of the calling thread to its file (trace.cpp).
void flush_own_ring();

class Recorder {
 public:
  // Makes the folders, and writes the first line of the process's file.
  explicit Recorder(const elbow_trace_settings& settings);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  int category(const std::string& name);
  const elbow_trace_type* type(const std::string& name, int category, const char* const fields[3]);
  void filter(const elbow_trace_type* type, bool on);
  std::uint64_t initial_mask();
  // This thread's ring, made now.
  Ring& attach(const std::string& name);
  // Its thread has ended: saves the events and gives the memory back. Where that fails they stay in memory until the stop.
  void detach(Ring& ring);
  // Its thread waits until what the ring holds is in the file. Where that fails its events are lost until it succeeds.
  void flush_full(Ring& ring);
  void sync(const elbow_clock* clock, const elbow_clock_sync_point& point);
  void region(bool on);
  // May be called again where it failed: what is in memory stays there until then.
  elbow_trace_summary stop();
  // Instead of a stop: removes what was recorded.
  void discard();
  // Whether a category but these, and the library's own, has a type.
  bool has_others(const std::vector<int>& categories);
  // MPI was finalised: a process without an end was not killed.
  void finalised();
  // After the stop: events kept of a category (63: the library's own), and what these took, ns.
  void cost(int category, std::uint64_t& events, double& overhead_ns) const;

  const elbow_trace_type* own_mask() const { return mask_type_; }
  // Times are CLOCK_MONOTONIC's.
  bool steered() const { return clock_.steered; }

 private:
  struct Type {
    elbow_trace_type handle;
    std::string name;
    int category;
  };
  struct Thread {
    Ring ring;
    SavedRing saved;
    std::mutex saving;  // its events are drained, its ring grows, or it ends
    Thread(const std::string& path, const RingHeader& header, const std::string& saved_path, std::uint16_t lost_type)
        : ring(path, header), saved(ring, saved_path, lost_type) {}
  };

  void take_settings(const elbow_trace_settings& settings);
  void make_memory(const elbow_trace_settings& settings);
  void begin();
  void prepare();
  RingHeader header_of(const std::string& name, int thread) const;
  std::vector<Thread*> threads();
  Thread* thread_of(const Ring& ring);
  std::int64_t now() const;
  void append_first();
  void append_clock(const char* when);
  void write_down(const Line& line);
  void write_lines();
  void append_end(const elbow_trace_summary& all);
  EventCost calibrated();
  double batch_ns(elbow_trace_ring& ring) const;
  void start_helper();
  void end_helper();
  bool help();
  bool drain();
  bool grow(std::uint64_t room);
  template <typename Work>
  void flush(const Thread& thread, Work work);
  void failed(const char* why);
  elbow_trace_summary added_up();

  std::mutex mutex_;
  std::string directory_;
  MemoryFolder memory_folder_;
  std::string memory_;  // its path
  std::string stem_;    // of the process's files: rank-00003
  elbow_trace_settings settings_;
  HostClock clock_;
  std::vector<std::string> wanted_;   // categories named at the start; empty: all
  std::vector<std::string> without_;  // types that are off from the start
  std::vector<std::string> categories_;
  // Deques, since handles and rings keep their places.
  std::deque<Type> types_;
  std::deque<Thread> threads_;
  int refused_threads_ = 0;
  std::string refusal_;  // why the first of them has no ring
  const elbow_trace_type* mask_type_ = nullptr;
  const elbow_trace_type* region_type_ = nullptr;
  const elbow_trace_type* flush_type_ = nullptr;
  const elbow_trace_type* lost_type_ = nullptr;
  EventCost cost_;
  std::vector<std::uint64_t> by_category_;
  std::mutex growing_;  // rings grow, or the region of interest begins
  bool inside_ = false;
  std::mutex trouble_mutex_;
  std::array<char, 512> trouble_{};  // why the helper could not do its work, at first
  Deadline not_before_{};
  std::deque<std::string> unwritten_;  // lines, in order
  Deadline write_not_before_{};
  std::unique_ptr<Helper> helper_;
};

constexpr auto kAgain = std::chrono::seconds(1);  // after which a full disk or memory is tried again

}  // namespace elbowroom::trace
