// How a broadcast is to travel: ways by name, and the one that takes the least time on a network.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "cost.hpp"
#include "engine.hpp"

namespace elbowroom::broadcast {

// A kind of tree (parse_tree), or "two". Throws std::invalid_argument for others.
Way parse_way(std::string_view tree, std::size_t segment);
std::string format_way(const Way& way);  // without the segment

// Of all that are worth trying, the way whose predicted time, with what forwarding costs the busiest recipient, is least.
// `segment`: bytes; 0: it is chosen, too. Where the settings have groups, trees of two levels.
Way best_way(const Network& network, const Settings& settings, std::size_t size, std::size_t recipients,
             std::size_t segment = 0);

// Finds the best way once for all sizes, and numbers of recipients, of a class: an eighth of an octave.
class Chooser {
 public:
  Chooser(const Network& network, Settings settings) : network_(network), settings_(std::move(settings)) {}
  const Way& choose(std::size_t size, std::size_t recipients, std::size_t segment = 0);

 private:
  Network network_;
  Settings settings_;
  std::map<std::array<std::uint64_t, 3>, Way> chosen_;
};

}  // namespace elbowroom::broadcast
