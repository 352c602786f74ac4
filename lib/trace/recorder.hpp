// One process's trace: its categories and types, its threads' rings, and what is written when it ends.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "elbowroom/trace.h"
#include "observe/host_clock.hpp"
#include "trace/helper.hpp"
#include "trace/refusal.hpp"
#include "trace/ring.hpp"
#include "trace/saved_ring.hpp"

namespace elbowroom::trace {

// A summary for a person.
std::string described(const elbow_trace_summary& summary);

// What recording one event takes, ns: one that is kept, and one that is lost since the ring is full.
struct EventCost {
  double kept = 0;
  double lost = 0;
};

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
  void sync(const elbow_clock* clock, const elbow_sync_point& point);
  void region(bool on);
  // May be called again where it failed: what is in memory stays there until then.
  elbow_trace_summary stop();
  // After the stop: events kept of a category (63: the library's own), and what these took, ns.
  void cost(int category, std::uint64_t& events, double& overhead_ns) const;

  const elbow_trace_type* own_mask() const { return mask_type_; }

 private:
  struct Type {
    elbow_trace_type handle;
    std::string name;
    int category;
  };
  struct Thread {
    Ring ring;
    SavedRing saved;
    Thread(const std::string& path, const RingHeader& header, const std::string& saved_path, std::uint16_t lost_type)
        : ring(path, header), saved(ring, saved_path, lost_type) {}
  };

  void take_settings(const elbow_trace_settings& settings);
  void make_memory(const elbow_trace_settings& settings);
  void begin();
  RingHeader header_of(const std::string& name, int thread) const;
  std::vector<Thread*> threads();
  std::int64_t now() const;
  void append_first();
  void append_clock(const char* when);
  void append_end(const elbow_trace_summary& all);
  EventCost calibrated();
  double batch_ns(elbow_trace_ring& ring) const;
  bool help();
  bool drain();
  bool grow(std::uint64_t room);
  template <typename Work>
  void flush(const Thread& thread, Work work);
  void failed(const std::string& why);
  elbow_trace_summary added_up();

  std::mutex mutex_;
  std::string directory_;
  std::string memory_;
  std::string stem_;  // of the process's files: rank-00003
  elbow_trace_settings settings_;
  HostClock clock_;
  std::vector<std::string> wanted_;  // categories named at the start; empty: all
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
  std::string trouble_;  // why the helper could not do its work, at first
  Deadline not_before_{};
  std::unique_ptr<Helper> helper_;
};

}  // namespace elbowroom::trace
