// What processes, threads, counters and events are called in a viewer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/merge/sink.hpp"

namespace elbowroom::trace {

// Names are bytes that a program gave; what is not UTF-8 in them becomes U+FFFD.
std::string valid_utf8(std::string_view bytes);

std::string process_title(const MergedRank& rank);     // "rank 3 (host, process 812), killed"
std::string thread_title(const MergedThread& thread);  // its name, or "thread 2"
// Of the counter that `which` tells from others of its type: "power socket 1"
std::string counter_title(const MergedType& type, std::uint32_t which);
std::string gap_title(std::uint64_t lost);  // "lost 123 events", "recorder at work"

// Names of tasks that are kept as numbers; others are written where they are used, so that memory does not grow.
constexpr std::size_t kMostTaskNames = 1 << 16;

// In the order of their bits.
constexpr std::pair<EventFlag, std::string_view> kFlagNames[] = {
    {kTachyon, "tachyon"},           {kSuspect, "suspect"}, {kUnmatched, "unmatched"},   {kUnsynced, "unsynced"},
    {kExtrapolated, "extrapolated"}, {kMoved, "moved"},     {kMismatched, "mismatched"}, {kClipped, "clipped"}};

// Of an event of a message.
inline std::uint32_t communicator_of(const MergedEvent& message) {
  return static_cast<std::uint32_t>(message.first >> 32);
}
inline std::uint32_t peer_of(const MergedEvent& message) { return static_cast<std::uint32_t>(message.first); }

// Numbers for processes and threads where a viewer takes equal ones of two hosts for the same: from 1, a process and its
// first thread the same.
struct Numbers {
  explicit Numbers(const MergedJob& job);
  std::vector<std::int32_t> process;  // of each of MergedJob::ranks
  std::vector<std::int32_t> thread;   // of each of MergedJob::threads
  std::int32_t next = 1;
};

// Descriptive records by what they describe: a task (of that number, in its process), or events of a type by `first`.
class Texts {
 public:
  explicit Texts(const MergedJob& job);
  bool task(std::uint32_t type) const { return task_[type]; }
  // Empty: none.
  std::string_view of(const MergedEvent& event) const { return of(event.thread, event.type, event.first); }
  std::string_view of(std::uint32_t thread, std::uint32_t type, std::uint64_t first) const {
    return described_[type] ? lookup(thread, type, first) : std::string_view();
  }

 private:
  struct Key {
    std::uint32_t rank;
    std::uint32_t type;  // kTask: of any task
    std::uint64_t key;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  static constexpr std::uint32_t kTask = 0xFFFFFFFF;
  std::string_view lookup(std::uint32_t thread, std::uint32_t type, std::uint64_t first) const;

  std::vector<bool> task_;           // of each type
  std::vector<bool> described_;      // of each type: there are texts about it
  std::vector<std::uint32_t> rank_;  // of each thread
  std::unordered_map<Key, std::string_view, Hash> texts_;
};

}  // namespace elbowroom::trace
