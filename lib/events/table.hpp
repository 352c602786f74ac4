#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "events/json_text.hpp"

namespace elbowroom::events {

constexpr std::int64_t kNone = -1;  // not recorded

// Numbers texts in the order in which they come.
class Numbering {
 public:
  std::int32_t operator[](std::string_view text) {
    return number(text, [text] { return std::string(text); });
  }
  // The number of what has this key; `text` makes its text when it comes first.
  template <typename Text>
  std::int32_t number(std::string_view key, const Text& text) {
    if (const auto at = numbers_.find(key); at != numbers_.end()) {
      return at->second;
    }
    const auto number = static_cast<std::int32_t>(texts_.size());
    texts_.push_back(text());
    numbers_.emplace(key, number);
    return number;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> numbers_;
  std::vector<std::string> texts_;
};

// An event as it stands in the array.
struct RawEvent {
  char phase = 0;
  std::int32_t kind = 0;
  std::int32_t lane = 0;
  std::int32_t thread = 0;  // process and thread, by which begins and ends belong together
  bool has_start = false;
  bool has_duration = false;
  double start = 0;
  double duration = 0;
  std::int64_t correlation = kNone;
  std::int64_t external = kNone;
};

// Events with begin and duration as columns; `write` sends them on and forgets them.
class Columns {
 public:
  static constexpr std::size_t kBlock = std::size_t{1} << 16;             // events that are written at once
  static constexpr std::uint32_t kUncorrelated = std::uint32_t{1} << 31;  // in the count of such a block

  // Without the last two columns where no event has such a number.
  explicit Columns(bool correlated = true) : correlated_(correlated) {}

  void add(const RawEvent& event);
  std::size_t size() const { return kind_.size(); }
  // uint32 count, then kind and lane (int32), start and duration (double, us), correlation and external (int64), which
  // are not there if the count has the bit kUncorrelated.
  void write(int file);
  // Which classes and lanes came together, as JSON: [[kind, lane], ...], as they came first.
  std::string pairs() const { return list(pairs_); }

 private:
  bool correlated_;
  std::vector<std::int32_t> kind_, lane_;
  std::vector<std::int32_t> last_lane_;  // of each class, that of its last event
  std::unordered_set<std::uint64_t> known_pairs_;
  std::vector<std::string> pairs_;
  std::vector<double> start_, duration_;
  std::vector<std::int64_t> correlation_, external_;
};

// Begins wait for their ends, by thread.
class OpenEvents {
 public:
  void begin(const RawEvent& event) { open_[event.thread].push_back(event); }
  // The whole event, if a begin waits and both have a time.
  bool end(const RawEvent& end, RawEvent& whole);
  std::size_t waiting() const;

 private:
  std::unordered_map<std::int32_t, std::vector<RawEvent>> open_;
};

void write_all(int file, const void* data, std::size_t size);

}  // namespace elbowroom::events
