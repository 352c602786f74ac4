#include "ways.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace elbowroom::broadcast {
namespace {

// The first ones are the best most often, so that the others are given up early.
constexpr std::string_view kTrees[] = {"two",      "binomial", "binary", "flat", "delegate-binary",
                                       "4-nomial", "8-nomial", "4-ary",  "chain"};
constexpr std::size_t kSegments[] = {0, 32 << 10, 64 << 10, 16 << 10, 128 << 10, 8 << 10, 256 << 10};
constexpr std::size_t kLongestChain = 64;  // a rank that is late delays all behind it
constexpr double kCaution = 1.1;           // of two trees, whose time depends on which of two answers comes first
constexpr int kClassBits = 3;              // 8 classes an octave

// The middle of a number's class.
std::size_t middle(std::size_t number) {
  const int shift = std::max(static_cast<int>(std::bit_width(number)) - 1 - kClassBits, 0);
  return ((number >> shift) << shift) + ((std::size_t{1} << shift) >> 1);
}

}  // namespace

Way parse_way(std::string_view tree, std::size_t segment) {
  Way way;
  way.segment = segment;
  way.two_trees = tree == "two";
  if (!way.two_trees) way.tree = parse_tree(tree);
  return way;
}

std::string format_way(const Way& way) { return way.two_trees ? "two" : format_tree(way.tree); }

Way best_way(const Network& network, const Settings& settings, std::size_t size, std::size_t recipients,
             std::size_t segment) {
  if (recipients <= 1) return parse_way("flat", segment);
  Way best = parse_way("binomial", segment);
  double least = std::numeric_limits<double>::infinity();
  const auto attempt = [&](Way way) {
    // Links between racks are shared: the data are to pass them once.
    way.tree.two_level = !settings.groups.empty() && way.tree.shape != Shape::kFlat;
    const Cost found = cost(network, settings, way, size, recipients, least);
    const double received = way.two_trees ? kCaution * found.received : found.received;
    const double weighed = received + network.forwarding * static_cast<double>(found.forwarded);
    if (weighed >= least) return;
    least = weighed;
    best = way;
  };
  for (const std::string_view tree : kTrees) {
    if (tree == "chain" && recipients > kLongestChain) continue;
    if (segment != 0) {
      attempt(parse_way(tree, segment));
      continue;
    }
    for (const std::size_t tried : kSegments) {
      const bool whole = tried == 0;
      if (!whole && (tried >= size || size <= settings.inline_limit)) continue;
      if (whole && tree == "two") continue;  // it has no second segment
      attempt(parse_way(tree, tried));
    }
  }
  return best;
}

const Way& Chooser::choose(std::size_t size, std::size_t recipients, std::size_t segment) {
  const std::size_t typical = size <= settings_.inline_limit ? std::min(middle(size), settings_.inline_limit)
                                                             : std::max(middle(size), settings_.inline_limit + 1);
  const std::size_t about = middle(recipients);
  const auto [found, is_new] = chosen_.try_emplace({typical, about, segment});
  if (is_new) found->second = best_way(network_, settings_, typical, about, segment);
  return found->second;
}

}  // namespace elbowroom::broadcast
