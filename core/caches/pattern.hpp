// Which memory one exchange touches: accesses that have nothing to do with the message, then the message.
//
// Extraneous accesses as in Tan and Jarvis 2012, section 2. The message through shared memory: the sender reads what its
// MPI library keeps and its buffer and writes the shared cell; the receiver reads what its library keeps and the cell, and
// writes its buffer. The cell is one, though libraries use several in turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "caches/hierarchy.hpp"

namespace elbowroom {

inline constexpr std::size_t kSenderCore = 0;  // in a HierarchyShape
inline constexpr std::size_t kReceiverCore = 1;

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

// Bytes of the MPI library's own data and stack that a message touches on each side, and how many of them the barrier
// before it has touched already. The defaults were counted for 400 B and Open MPI 4.1 and 5.0 (docs/design/method.md).
struct Footprint {
  std::uint64_t sender = 9216;
  std::uint64_t receiver = 8192;
  std::uint64_t sender_in_barrier = 5120;
  std::uint64_t receiver_in_barrier = 5120;
};

inline constexpr std::uint64_t kCellHeader = 64;  // bytes before a message in the cell

struct ExchangeMemory {
  std::vector<Region> extraneous;  // of each core of the model
  Region sent;
  Region received;
  Region cell;
  std::vector<Region> sender_library;
  std::vector<Region> receiver_library;
  std::vector<Region> sender_barrier;  // what of the library's a barrier touches
  std::vector<Region> receiver_barrier;
};

inline constexpr std::uint64_t kMostAccesses = std::uint64_t{1}
                                               << 44;  // bytes that an array of made-up memory may have

// Memory at addresses of the model's own choice, pages apart; the library's lines are spread evenly over 1 MiB.
ExchangeMemory synthetic_memory(std::size_t cores, std::uint64_t message, std::uint64_t largest,
                                const Footprint& footprint);

struct Touching {
  bool sender = false;
  bool receiver = false;
  bool bystanders = false;
  bool write = true;
  bool fresh = false;    // the sender writes new contents into its buffer before its extraneous accesses
  bool barrier = false;  // parts the accesses from the message
};

AccessPattern exchange_pattern(const ExchangeMemory& memory, const Touching& touching);

// An address of a process in the model's one address space.
std::uint64_t of_process(std::size_t process, std::uint64_t address);

}  // namespace elbowroom
