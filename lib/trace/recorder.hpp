// One process's trace: its categories and types, its threads' rings, and what is written when it ends.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "elbowroom/trace.h"
#include "observe/host_clock.hpp"
#include "trace/refusal.hpp"
#include "trace/ring_file.hpp"

namespace elbowroom::trace {

// A ring in memory, mapped as long as the process lives: its thread may write at any time. The file stays when the process
// is killed, and is removed when its contents are saved.
class Ring {
 public:
  Ring(std::string path, const RingHeader& header);
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  RingHeader& header() { return *header_; }
  elbow_trace_slot* slots();
  bool add_text(std::uint16_t type, std::uint64_t key, std::string_view text);
  // Writes what is used to `path`, whole or not at all.
  void save(const std::string& path);
  void remove_file();

 private:
  std::string path_;
  RingHeader* header_ = nullptr;
};

class Recorder {
 public:
  // Makes the folders, and writes the first line of the process's file.
  explicit Recorder(const elbow_trace_settings& settings);

  int category(const std::string& name);
  const elbow_trace_type* type(const std::string& name, int category, const char* const fields[3]);
  void filter(const elbow_trace_type* type, bool on);
  std::uint64_t initial_mask();
  // This thread's ring, made now.
  Ring& attach(const std::string& name);
  void sync(const elbow_clock* clock, const elbow_sync_point& point);
  elbow_trace_summary stop();
  double event_ns() const { return event_ns_; }
  const elbow_trace_type* own_mask() const { return mask_type_; }
  const elbow_trace_type* own_region() const { return region_type_; }

 private:
  RingHeader header_of(const std::string& name, int thread) const;
  void append(const std::string& line, bool first = false);
  double calibrated();

  std::mutex mutex_;
  std::string directory_;
  std::string memory_;
  std::string stem_;  // of the process's files: rank-00003
  elbow_trace_settings settings_;
  std::vector<std::string> wanted_;  // categories named at the start; empty: all
  std::vector<std::string> categories_;
  struct Type {
    elbow_trace_type handle;
    std::string name;
    int category;
  };
  // Deques, since handles and rings keep their places.
  std::deque<Type> types_;
  std::deque<Ring> rings_;
  const elbow_trace_type* mask_type_ = nullptr;
  const elbow_trace_type* region_type_ = nullptr;
  double event_ns_ = 0;
};

}  // namespace elbowroom::trace
