#pragma once

#include <simdjson.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "events/source.hpp"
#include "events/table.hpp"

namespace elbowroom::events {

using Value = std::optional<simdjson::dom::element>;

// The lanes of events that came last, by process, thread and stream: where these are numbers, as they mostly are.
class RecentLanes {
 public:
  // `find` finds the number of one that is not known.
  template <typename Find>
  std::int32_t number(const Value& process, const Value& thread, const Value& stream, const Find& find);

 private:
  struct Lane {
    std::int64_t process, thread, stream;
    std::int32_t number = -1;
  };

  std::array<Lane, 64> lanes_{};
};

// Reads a trace in JSON (Trace Event Format) window by window and writes its events as columns.
class Reader {
 public:
  Reader(Source& source, int out) : source_(source), out_(out) {}

  // All events as blocks of columns, a block of none, then one JSON document: the classes and lanes by number, what
  // metadata say of processes, what stands around the events, and what is left out. Declined where it is not JSON, or
  // damaged in its first window; what follows later damage is not read, and the document says so (`doubt`).
  void run();

 private:
  void find_events();
  bool take_window();
  void forget(std::size_t length);
  std::size_t next_event(std::size_t from) const;
  bool parse(std::size_t length);
  bool replace_words(std::size_t length);
  std::size_t take_until_damage();
  RawEvent event(simdjson::dom::object object);
  void commit();
  void close();

  Source& source_;
  int out_;
  std::string buffer_;      // begins with the [ of the window's array
  std::size_t offset_ = 0;  // of the buffer in the file's JSON; at the end, that of the tail
  std::string head_, tail_, doubt_;
  bool begun_ = false;  // a window was taken
  simdjson::dom::parser parser_;
  Numbering classes_, lanes_, threads_;
  RecentLanes recent_lanes_;
  std::vector<std::string> metadata_;
  OpenEvents open_;
  Columns columns_;
  std::size_t timeless_ = 0;
  bool merged_ = false;  // steps are one class, with 0 for their numbers
  std::string key_;      // of the class or lane that is looked up
};

}  // namespace elbowroom::events
