// Random schedules for the tests: ranks, messages, and how late each rank posts its receives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine.hpp"

namespace elbowroom::broadcast {

struct ScheduledMessage {
  int root = 0;
  std::uint32_t context = 0;
  std::int64_t tag = 0;
  std::size_t size = 0;
  Way way;
  std::vector<Destination> destinations;
};

struct Schedule {
  std::uint64_t seed = 0;
  int ranks = 2;
  Settings settings;
  std::uint32_t channels = 1000;
  std::size_t ahead = 0;  // operations that a rank posts before earlier ones are over (a submission window)
  bool computes = false;  // ranks make no progress for long
  bool shuffled = false;  // ranks post in orders of their own, but for data of one key
  std::vector<ScheduledMessage> messages;
};

Schedule random_schedule(std::uint64_t seed);

// Runs it over a loopback network. Nothing where every recipient got the bytes of every message once, in the order of each
// key, and nothing is left; else what went wrong.
std::optional<std::string> run(const Schedule& schedule);

// The fewest messages of the schedule that still fail.
Schedule shrunk(Schedule schedule);
std::string describe(const Schedule& schedule);

}  // namespace elbowroom::broadcast
