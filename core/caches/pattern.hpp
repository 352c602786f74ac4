// Which memory one exchange touches: accesses that have nothing to do with the message, then the message.
//
// Extraneous accesses as in Tan and Jarvis 2012, section 2. The message through shared memory: the sender reads what its
// MPI library keeps and its buffer and writes the shared cell; the receiver reads what its library keeps and the cell, and
// writes its buffer. The cell is one (libraries use several in turn), and the library's own data are one block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "caches/hierarchy.hpp"

namespace elbowroom {

inline constexpr std::size_t sender_core = 0;  // in a HierarchyShape
inline constexpr std::size_t receiver_core = 1;

struct Region {
  std::uint64_t address = 0;  // equal addresses are the same memory, so those of another process are moved apart
  std::uint64_t bytes = 0;
};

// Extraneous accesses of one core: as many bytes from the start of `memory` as the size says.
struct Sweep {
  std::size_t core;
  Region memory;  // as large as the largest size
  bool write;
};

struct Step {
  std::size_t core;
  Region memory;
  bool write;
  bool counted;  // belongs to the message
};

// One exchange, repeated for ever: all sweeps, then all steps in order.
struct AccessPattern {
  std::vector<Sweep> sweeps;
  std::vector<Step> steps;
};

struct ExchangeMemory {
  std::vector<Region> extraneous;  // of each core of the model; empty regions touch nothing
  Region sent;
  Region received;
  Region cell;
  Region sender_library;
  Region receiver_library;
};

// Bytes of the MPI library's own data that a message touches on each side, unless told otherwise: docs/method.md says how
// they were counted.
inline constexpr std::uint64_t default_footprint = 4096;
inline constexpr std::uint64_t cell_header = 64;  // bytes before a message in the cell

// Memory at addresses of the model's own choice, all regions on pages of their own.
ExchangeMemory made_up_memory(std::size_t cores, std::uint64_t message, std::uint64_t largest, std::uint64_t footprint);

struct Touching {
  bool sender = false;
  bool receiver = false;
  bool bystanders = false;
  bool write = true;
  bool fresh = false;  // the sender writes new contents into its buffer before each message, outside of it
};

AccessPattern exchange_pattern(const ExchangeMemory& memory, const Touching& touching);

// An address of a process in the model's one address space.
std::uint64_t of_process(std::size_t process, std::uint64_t address);

}  // namespace elbowroom
