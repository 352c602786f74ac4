#pragma once

#include <otf2/otf2.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "events/otf2/definitions.hpp"
#include "events/table.hpp"

namespace elbowroom::events {

// What this reader leaves to the slower one of elbowroom, which answers with a sentence.
struct Otf2Declined : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Reads an archive of OTF2 location by location and writes its regions and nonblocking messages as columns.
class Otf2Reader {
 public:
  Otf2Reader(const std::string& anchor, int out);
  ~Otf2Reader();
  Otf2Reader(const Otf2Reader&) = delete;
  Otf2Reader& operator=(const Otf2Reader&) = delete;

  // Blocks of columns and a block of none, as Reader of JSON does; classes are regions of the host (their place in the
  // list), regions of devices (behind them) and, last, messages in flight; lanes are locations, then the messages of
  // each process. Then a JSON document: regions (number, name, role, paradigm), locations (number, name, type,
  // process), how many messages there are, and whether all could be read (`doubt`). Times are from the first event.
  void run();

  // Events of the location that is read; called back by libotf2.
  void enter(OTF2_TimeStamp time, OTF2_RegionRef region);
  void leave(OTF2_TimeStamp time, OTF2_RegionRef region);
  void post(OTF2_TimeStamp time, std::uint64_t request);
  void complete(OTF2_TimeStamp time, std::uint64_t request);

 private:
  struct Open {
    OTF2_RegionRef region;
    std::int64_t start;
  };

  bool read_events();
  bool read_location(const Otf2Definitions::Location& location, OTF2_EvtReaderCallbacks* callbacks);
  std::int64_t ns(OTF2_TimeStamp time);
  void add(std::int32_t kind, std::int32_t lane, std::int64_t start, std::int64_t end);
  void close(bool whole);

  OTF2_Reader* reader_;
  int out_;
  Otf2Definitions definitions_;
  Numbering processes_;
  std::int32_t lane_ = 0, messages_lane_ = 0, first_class_ = 0;  // of the location that is read
  std::vector<Open> open_;                                       // regions, the innermost last
  std::unordered_map<std::uint64_t, std::int64_t> posted_;       // requests, and when
  bool begun_ = false;
  OTF2_TimeStamp first_ = 0;
  double tick_ = 1;  // ns
  std::size_t messages_ = 0;
  Columns columns_{false};
};

}  // namespace elbowroom::events
