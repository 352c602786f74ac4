// Whether large messages move on this node now, as a lever needs to know it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "elbowroom/guard.h"

namespace elbowroom::guard {

// A receive is in flight from its post on, and a send waits for its receiver: bytes of which none arrive for as long as the
// slowest network of interest takes for all of them are not on their way.
constexpr double kSlowestNetwork = 0.5e9;            // B/s
constexpr std::uint64_t kLeastPatience = 1'000'000;  // ns
constexpr std::uint64_t kLargestStep = 1 << 20;      // bytes: smaller changes are other, small messages

// Whether all ranks of the job are on this node, as far as its launcher says: then each message that is received here is sent
// here, and what is posted and not sent does not count.
inline bool job_is_on_one_node() {
  constexpr const char* kSizes[][2] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                       {"PMI_SIZE", "MPI_LOCALNRANKS"}};
  for (const auto& names : kSizes) {
    const char* const all = std::getenv(names[0]);
    const char* const local = std::getenv(names[1]);
    if (all != nullptr && local != nullptr) {
      return std::strcmp(all, local) == 0;
    }
  }
  return false;
}

// Any thread may look; those that look at once may see the moment of a change slightly differently.
class Movement {
 public:
  explicit Movement(bool one_node = job_is_on_one_node()) : one_node_(one_node) {}

  // `traffic` at `now`, ns, where the bytes in flight are enough to be of interest.
  bool look(const elbow_guard_traffic& traffic, std::uint64_t now) {
    const std::uint64_t flight = traffic.bytes[ELBOW_GUARD_OUT] + (one_node_ ? 0 : traffic.bytes[ELBOW_GUARD_IN]);
    if (flight < kLargestStep) {
      return false;
    }
    const std::uint64_t moved = traffic.moved[ELBOW_GUARD_OUT] + traffic.moved[ELBOW_GUARD_IN];
    if (differ(flight, flight_.load(std::memory_order_relaxed)) ||
        differ(moved, moved_.load(std::memory_order_relaxed))) {
      flight_.store(flight, std::memory_order_relaxed);
      moved_.store(moved, std::memory_order_relaxed);
      changed_.store(now, std::memory_order_relaxed);
      return true;
    }
    const std::uint64_t since = changed_.load(std::memory_order_relaxed);
    const auto patience = static_cast<std::uint64_t>(static_cast<double>(flight) / kSlowestNetwork * 1e9);
    return now < since + std::max(patience, kLeastPatience);
  }

 private:
  static bool differ(std::uint64_t one, std::uint64_t other) {
    return std::max(one, other) - std::min(one, other) >= kLargestStep;
  }

  bool one_node_;
  std::atomic<std::uint64_t> flight_ = 0;
  std::atomic<std::uint64_t> moved_ = 0;
  std::atomic<std::uint64_t> changed_ = 0;
};

// Whether large messages move, by the board. `board` may be NULL: none do.
inline bool messages_move(const elbow_guard* board, Movement& movement) {
  if (elbow_guard_pressure(board) < 1) {
    return false;
  }
  elbow_guard_traffic traffic{};
  traffic.size = sizeof traffic;
  return elbow_guard_read(board, &traffic) == 0 && movement.look(traffic, elbow_guard_now());
}

// The numbers of a lever's setting on the board (src/elbowroom/guard/lever.py): 0 as it is, 1 placebo, 2 its first setting.
constexpr std::uint64_t kPlacebo = 1;

// Where a lever inside the ranks says which setting it saw last, for the guard (src/elbowroom/guard/inside.py).
constexpr std::uint32_t place_of_seen(std::uint32_t lever) { return ELBOW_GUARD_SETTINGS - 1 - lever; }

}  // namespace elbowroom::guard
