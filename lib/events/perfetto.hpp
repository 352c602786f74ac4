#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "events/source.hpp"
#include "events/table.hpp"

namespace elbowroom::events {

// Reads a trace in Perfetto's protobuf packet by packet and writes its slices as columns, as Reader does. What follows
// damage is not read, and the document says so (`doubt`).
class PerfettoReader {
 public:
  PerfettoReader(Source& source, int out) : source_(source), out_(out) {}

  void run();

 private:
  struct Track {
    std::string name;
    std::string process_name;
    std::uint64_t parent = 0;
    std::optional<std::int64_t> process, thread;
    std::int32_t lane = -1;
    std::string process_text;  // JSON, of the lane
  };

  struct Clock {
    std::uint64_t last = 0;  // ns
    std::uint64_t unit = 1;  // ns
    bool incremental = false;
  };

  // What packets of one writer refer to.
  struct Sequence {
    std::unordered_map<std::uint64_t, std::string> names, categories;
    std::unordered_map<std::uint32_t, Clock> clocks;
    std::uint64_t track = 0;
    std::uint32_t clock = 0;
  };

  // The parts of a packet that count; texts are of the packet.
  struct Packet {
    std::uint64_t time = 0;
    std::uint32_t clock = 0, sequence = 0, flags = 0;
    std::string_view event, interned, defaults, track, clocks, compressed;
  };

  void packet(std::string_view data);
  void take_interned(std::string_view data, Sequence& sequence);
  void take_defaults(std::string_view data, Sequence& sequence);
  void take_clocks(std::string_view data, Sequence& sequence);
  void take_track(std::string_view data);
  void take_event(const Packet& packet, Sequence& sequence);
  void take_compressed(std::string_view data);
  std::uint64_t time_of(const Packet& packet, Sequence& sequence);
  Track& track_of(std::uint64_t number);
  void add(const RawEvent& event);
  void close(std::string_view doubt);

  Source& source_;
  int out_;
  Numbering classes_, lanes_;
  std::unordered_map<std::uint32_t, Sequence> sequences_;
  std::unordered_map<std::uint64_t, Track> tracks_;
  std::vector<std::string> metadata_;
  OpenEvents open_;
  Columns columns_;
  std::optional<std::uint64_t> origin_;
};

}  // namespace elbowroom::events
