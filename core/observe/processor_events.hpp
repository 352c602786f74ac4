// Events that perf_event has no name of its own for on every processor: cycles stalled on memory, misses of the first
// level of cache by reads and writes, and of the second one. Their numbers are those of the vendors' public lists of events.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace elbowroom {

struct ProcessorEvent {
  std::string name;      // as the vendor writes it
  std::uint64_t config;  // of PERF_TYPE_RAW
};

struct ProcessorEvents {
  // Their sum: cycles in which nothing was done because data had not arrived, or because stores waited for memory (the
  // latter by Intel's processors and Arm's only).
  std::vector<ProcessorEvent> memory_stalls;
  // Lines that reads or writes brought into the first level: what PAPI_L1_DCM counts.
  std::optional<ProcessorEvent> l1_misses;
  std::optional<ProcessorEvent> l2_misses;
};

// Of the processor that these lines of /proc/cpuinfo describe; nothing where its events are not known.
ProcessorEvents processor_events(const std::map<std::string, std::string>& cpuinfo);
ProcessorEvents processor_events_here();

// `A + B`; empty without events.
std::string names_of(const std::vector<ProcessorEvent>& events);

// Why stalls on memory cannot be counted here; empty when they can.
std::string memory_stalls_refusal();

}  // namespace elbowroom
