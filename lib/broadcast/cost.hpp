// How long a broadcast takes, without sending one: the engine's rules over a network of few parameters, as in LogGP
// (Alexandrov et al. 1997). Each process has a link to one switch. A message occupies its sender and its receiver for
// `overhead` each, takes two link latencies, and then shares the sender's link and the receiver's with other messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "engine.hpp"
#include "flows.hpp"

namespace elbowroom::broadcast {

struct Cost {
  double received = 0;          // s until the last recipient has the data
  double released = 0;          // s until the last process has sent all that it forwards
  std::uint64_t forwarded = 0;  // bytes that the busiest recipient forwards
};

// All recipients have posted their receives, and all processes make progress. A long pipeline is extended from its first
// segments. Where the settings have groups, these have equal shares of the processes, rank after rank. Where `received` would be above `limit`, it is infinite, and found sooner.
Cost cost(const Network& network, const Settings& settings, const Way& way, std::size_t size, std::size_t recipients,
          double limit = std::numeric_limits<double>::infinity());

}  // namespace elbowroom::broadcast
