// Cache misses of a message in the steady state, without following accesses one by one.
//
// In a set that sees each line once a round, least-recently-used replacement has a closed form: if the set's lines are at
// most its ways all hit, otherwise all miss. Extraneous accesses are consecutive lines, so that their number in a set is
// arithmetic, and only sets that hold a line of the message matter. A line of the message that is used several times a
// round, or that another core wrote in between, is told by the distinct lines between two uses.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "caches/hierarchy.hpp"
#include "caches/pattern.hpp"

namespace elbowroom {

// Misses of one message at each place of a core's path.
struct MessageMisses {
  std::vector<std::uint64_t> sender;
  std::vector<std::uint64_t> receiver;
  bool operator==(const MessageMisses&) const = default;
};

class SteadyMisses {
 public:
  // Throws std::invalid_argument when sweeps overlap each other or the message's memory: the closed form needs them apart.
  SteadyMisses(HierarchyShape shape, const AccessPattern& pattern);

  // After `bytes` of extraneous accesses. Throws std::invalid_argument above what a sweep has.
  MessageMisses at(std::uint64_t bytes);
  const HierarchyShape& shape() const { return shape_; }

 private:
  struct Use {  // one line of a step
    std::size_t core;
    std::uint64_t line;
    bool write;
    bool counted;
    bool reaches;  // missed in all caches nearer than the one looked at
  };
  struct Event {
    std::size_t use;
    std::uint64_t line;
    bool taken;  // by a write of a core that does not go through the cache
    bool missed;
  };
  struct Group {  // what happens in one set of one cache
    std::uint64_t set = 0;
    std::vector<Event> events;   // in order
    std::uint64_t distinct = 0;  // lines of the message that reach the cache
  };
  struct User {
    std::size_t core;
    std::size_t place;
  };

  void add_step(const Step& step);
  void make_groups();
  void decide(std::size_t cache, Group& group);
  bool misses(std::size_t event, std::uint64_t sweeps, std::uint64_t ways);
  std::uint64_t sweeping(std::size_t cache, std::uint64_t set) const;
  std::uint64_t sweeping_of(const Sweep& sweep, std::size_t place, std::uint64_t set, std::uint64_t enough) const;
  bool sweep_misses(std::size_t cache, std::uint64_t set) const;
  bool sweep_reaches(std::size_t core, std::size_t place, std::uint64_t line) const;

  HierarchyShape shape_;
  std::vector<Sweep> sweeps_;
  std::vector<Use> uses_;
  std::vector<std::size_t> order_;          // caches, nearest level first
  std::vector<std::vector<User>> users_;    // of each cache
  std::vector<std::vector<Group>> groups_;  // of each cache, by set
  std::vector<char> nested_;                // of each core: sets of a nearer cache divide those of a farther one
  std::vector<std::vector<char>> missed_;   // of each use, at each place
  std::uint64_t bytes_ = 0;
  std::vector<Event> here_;            // of the set looked at: what reaches the cache
  std::vector<std::uint64_t> others_;  // lines in that set above the one looked at
};

// The same by following every access for `rounds` rounds, the last one counted.
MessageMisses simulated_misses(const HierarchyShape& shape, const AccessPattern& pattern, std::uint64_t bytes,
                               int rounds);

struct SizeWindow {
  std::uint64_t first;
  std::uint64_t step;
  std::uint64_t count;
};

// {"source": "modelled", "sender": {"L1": [count], ...}, "receiver": {...}}: misses of one message after each size.
nlohmann::json modelled_misses(const HierarchyShape& shape, const AccessPattern& pattern, const SizeWindow& sizes);

}  // namespace elbowroom
