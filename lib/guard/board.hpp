// The board: a file in shared memory with a header, a number for each rank of this node, side by side, and a cache line for
// each. Little endian.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "c_interface.hpp"
#include "elbowroom/guard.h"

namespace elbowroom::guard {

using c_interface::Refusal;

constexpr char kMagic[8] = {'E', 'L', 'B', 'G', 'U', 'A', 'R', 'D'};
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kHeaderBytes = 4096;
constexpr std::uint32_t kRanks = 1024;
constexpr std::uint32_t kMostRanks = 1 << 20;
constexpr std::uint64_t kScale = 1 << 20;

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t places;
  std::atomic<std::uint32_t> used;  // places that were ever taken: those behind them are free
  std::uint32_t reserved;
  std::atomic<std::uint64_t> scale;
  std::atomic<std::uint64_t> settings[ELBOW_GUARD_SETTINGS];
};
static_assert(sizeof(Header) <= kHeaderBytes);

// One number has both, so that a message costs one instruction: at most 65,535 messages and 256 TiB.
constexpr std::uint64_t kBytesInFlight = (std::uint64_t{1} << 48) - 1;
constexpr std::uint64_t kMessageInFlight = kBytesInFlight + 1;

constexpr std::uint64_t kHeldUnit = 10'000;  // ns: half a day of waiting fits

// Amounts: what a rank has in flight in each direction, rounded down to this unit, and both added up. They lie side by side, so
// that a reader takes 16 ranks from one cache line, and ranks write them only where a unit is passed: small messages, of which
// there may be millions in a second, leave a line that other cores write alone.
constexpr std::uint64_t kUnit = 16 * 1024;  // bytes
using Amount = std::atomic<std::uint32_t>;

// Of one rank, which alone writes it. Readers see each number whole, and not all of one moment.
struct alignas(64) Place {
  std::atomic<std::uint32_t> process;  // 0: free
  std::int32_t rank;
  std::atomic<std::uint64_t> flight[2];  // by direction: messages above kBytesInFlight, and their bytes
  std::atomic<std::uint64_t> moved[2];
  std::atomic<std::uint32_t> waiting;  // threads inside calls that wait
  std::atomic<std::uint32_t> held;     // for how long levers inside held work back, in kHeldUnit
  std::atomic<std::uint64_t> step_begin;
  std::atomic<std::uint64_t> steps;
};
static_assert(sizeof(Place) == 64 && offsetof(Place, step_begin) == 48);

// A mapping of the file; throws Refusal.
class Board {
 public:
  // `make`: where it is not there yet, for so many ranks; 0: not.
  Board(const std::string& path, std::uint32_t make);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  Header& header() const { return *reinterpret_cast<Header*>(memory_); }
  Place* places() const { return reinterpret_cast<Place*>(memory_ + kHeaderBytes + amount_bytes(count_)); }
  std::uint32_t count() const { return count_; }
  // Places behind these are free.
  std::uint32_t used() const { return std::min(header().used.load(std::memory_order_acquire), count_); }
  Amount* amounts() const { return reinterpret_cast<Amount*>(memory_ + kHeaderBytes); }
  bool writable() const { return writable_; }

  // For this process; NULL where all are taken. Needs a board that may be written.
  Place* take(std::int32_t rank) const;
  // Frees the places of processes that have ended; how many.
  int sweep() const;

  // Of a file for so many ranks.
  static std::size_t bytes_for(std::uint32_t ranks) {
    return kHeaderBytes + amount_bytes(ranks) + ranks * sizeof(Place);
  }

 private:
  // Whole cache lines.
  static std::size_t amount_bytes(std::uint32_t ranks) {
    return (ranks * sizeof(Amount) + sizeof(Place) - 1) / sizeof(Place) * sizeof(Place);
  }

  std::uint32_t count_ = 0;
  std::size_t bytes_ = 0;
  char* memory_ = nullptr;
  bool writable_ = false;
};

void free_place(Place& place, Amount& amount);

// The file that is meant where no path is given: ELBOW_GUARD, else the latest board in shared memory. "": none.
std::string usual_path();

}  // namespace elbowroom::guard
