// What is asked about the misses of a message, and the answer in the words of docs/reference/protocol.md.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "caches/model.hpp"

namespace elbowroom {

// {"line": bytes, "caches": [{level, bytes, ways, sets, cores}]}; `cores` are the operating system's numbers of the
// shape's.
nlohmann::json hierarchy_record(const HierarchyShape& shape, const std::vector<int>& cores);

struct SizeWindow {
  std::uint64_t first;
  std::uint64_t step;
  std::uint64_t count;
};

// {"source": "modelled", "sender": {"L1": [count], ...}, "receiver": {...}}: misses of one message after each size.
nlohmann::json modelled_misses(const HierarchyShape& shape, const AccessPattern& pattern, const SizeWindow& sizes);

// Caches of cores of this machine, by the operating system's numbers. Throws std::invalid_argument naming the core.
HierarchyShape shape_of_cores(const std::vector<int>& cores);

struct MissQuestion {
  int sender = 0;  // cores, the operating system's numbers
  int receiver = 1;
  std::vector<int> bystanders;
  Touching touching;
  std::uint64_t message = 400;  // bytes
  SizeWindow sizes{0, 0, 1};
  Footprint footprint;
};

// {"source": "modelled", "sender": {"L1": [...], ...}, "receiver": {...}, "model": {hierarchy, footprint, assumptions}}.
// Of each size, and without any accesses (`without`: the same misses for all sizes). What this machine's topology does
// not tell, and of messages above 64 KiB, is {"unknown": reason}.
struct MissAnswer {
  nlohmann::json after;
  nlohmann::json without;
};
MissAnswer modelled_misses(const MissQuestion& question);

}  // namespace elbowroom
