#include "protocol/extraneous.hpp"

#include <algorithm>
#include <cmath>

namespace elbowroom {
bool Extraneous::touches(int rank) const {
  return who == Who::both || (who == Who::sender && rank == 0) || (who == Who::receiver && rank == 1);
}

std::vector<Block> schedule(const Extraneous& extraneous) {
  std::vector<Block> blocks;
  blocks.reserve(static_cast<std::size_t>(2 * extraneous.count));
  const auto messages = static_cast<std::size_t>(extraneous.exchanges);
  for (std::int64_t size = 0; size < extraneous.count; ++size) {
    const std::size_t slot = static_cast<std::size_t>(size) * messages;
    blocks.push_back({size, false, slot, messages});
    blocks.push_back({size, true, static_cast<std::size_t>(extraneous.messages()) + slot, messages});
  }
  return blocks;
}

std::vector<Block> schedule_again(const Extraneous& extraneous, const std::vector<std::size_t>& slots) {
  std::vector<Block> blocks;
  const auto messages = static_cast<std::size_t>(extraneous.messages());
  for (const std::size_t slot : slots) {
    const auto size = static_cast<std::int64_t>(slot % messages) / extraneous.exchanges;
    blocks.push_back({size, slot >= messages, slot, 1});
  }
  return blocks;
}

std::vector<std::size_t> late_slots(const std::vector<Stamp>& sender, const std::vector<Stamp>& receiver) {
  std::vector<std::size_t> late;
  for (std::size_t slot = 0; slot < sender.size(); ++slot) {
    if (sender[slot].start < receiver[slot].start) {
      late.push_back(slot);
    }
  }
  return late;
}

std::vector<double> message_times(const std::vector<Stamp>& sender, const std::vector<Stamp>& receiver, double tick_ns,
                                  Timing timing) {
  std::vector<double> times;
  times.reserve(sender.size());
  for (std::size_t slot = 0; slot < sender.size(); ++slot) {
    const Stamp& sent = sender[slot];
    const Stamp& received = receiver[slot];
    const auto us = [&](std::int64_t ticks) { return static_cast<double>(ticks) * tick_ns * 1e-3; };
    switch (timing) {
      case Timing::one_way: times.push_back(us(received.end - std::max(sent.start, received.start))); break;
      case Timing::receive: times.push_back(us(received.end - received.start)); break;
      case Timing::send: times.push_back(us(sent.end - sent.start)); break;
      case Timing::receive_cpu: times.push_back(static_cast<double>(received.cpu_ns) * 1e-3); break;
      case Timing::send_cpu: times.push_back(static_cast<double>(sent.cpu_ns) * 1e-3); break;
    }
  }
  return times;
}

}  // namespace elbowroom
