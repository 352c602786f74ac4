// What a process said of itself in its file of lines: categories, types, comparisons of clocks, its last words.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/host_clock.hpp"
#include "clock/correction.hpp"

namespace elbowroom::trace {

constexpr int kMostRanks = 1 << 20;  // of a job; more are damage

struct LinesType {
  std::string name;
  int category = 0;
  std::array<std::string, 3> fields;
};

struct LinesSync {
  clock::SyncPoint point;
  bool same_source = true;  // the clocks that were compared are those of the events
};

struct LinesEnd {
  std::uint64_t recorded = 0;
  std::uint64_t kept = 0;
  std::uint64_t lost = 0;
  std::uint64_t texts_lost = 0;
  std::uint64_t advised_bytes = 0;
  std::int64_t end_ns = 0;  // of the process's clock; 0: not told
  double event_ns = 0;
};

struct RankLines {
  bool begun = false;      // there is a first line
  bool finalised = false;  // MPI was; what ended without an end after that was not killed
  std::uint64_t job = 0;
  int rank = 0;
  int ranks = 0;
  std::int64_t pid = 0;
  std::string memory;
  HostClock clock;
  std::map<int, std::string> categories;
  std::map<int, LinesType> types;
  std::vector<LinesSync> syncs;
  std::optional<LinesEnd> end;
  std::string damage;  // what is wrong, and in which line; the others were read
};

// A trace that cannot be read at all, or not as one: a sentence.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Takes nothing on trust. Raises Refused where the first line is of a version that this release does not read; `path` is
// named in the sentence.
RankLines read_lines(std::string_view text, const std::string& path);

}  // namespace elbowroom::trace
