// A message that is due at a fixed time, whether or not the ones before it have been answered (open loop).
#pragma once

#include <cstdint>

namespace elbowroom {

// ns of the clock: when the message was to start, when it started, when its answer had arrived.
struct DueMessage {
  std::int64_t due;
  std::int64_t start;
  std::int64_t end;
};

// How many messages are due in a window of so many seconds, one every `period` seconds; fewer when a round trip takes
// longer than the period (`round_trip_ns`), so that a phase ends. At least 2.
std::int64_t due_messages(double window_s, double period_s, double round_trip_ns);

}  // namespace elbowroom
