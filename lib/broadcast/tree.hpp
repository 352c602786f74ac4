// Who forwards to whom (Swartvagher 2022, section 4.2.2): trees over an ordered list of recipients. All is computed from the
// list alone, so that a recipient that gets the list of its subtree continues the same tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace elbowroom::broadcast {

// How a list becomes a tree. Recipients that come first in the list are nearer the root.
enum class Shape : std::uint8_t {
  kKary = 1,     // each forwards to at most `arity`: 1 is a chain, 2 a binary tree
  kKnomial = 2,  // each forwards until all have the data, `arity` - 1 in a round: 2 is a binomial tree
  kFlat = 3,     // the root sends to all
};

struct Tree {
  Shape shape = Shape::kKnomial;
  std::uint16_t arity = 2;
  bool delegate = false;    // the first recipient acts as the root
  bool two_level = false;   // first to one recipient of each group (rack), which serves its group
  std::uint16_t split = 0;  // so many recipients first, the others when these are served; 0: all at once

  bool operator==(const Tree&) const = default;
};

// A child of this node: where it is in the list, its subtree (places in the list, without the child itself, in the order in
// which the child is to have them), and the tree that the child makes of it. A branch waits for those of earlier stages.
struct Branch {
  std::size_t child = 0;
  std::vector<std::size_t> subtree;
  Tree tree;
  int stage = 0;
};

// The children of a node for `count` recipients, in the order in which to serve them. `groups`: the group of each recipient
// and `own_group` that of this node, for trees of two levels; may be empty for others.
std::vector<Branch> branches(const Tree& tree, std::size_t count, std::span<const std::uint16_t> groups = {},
                             std::uint16_t own_group = 0);

// A message of the tree, from place `from` of the list (-1: the root) to place `to`, on level `depth`. `step`: when it is sent,
// where each rank sends one message at a time and each takes a step, as in Fig. 4.1 of the thesis.
struct Edge {
  int from = -1;
  int to = 0;
  int depth = 1;
  int step = 1;
};

// All messages, as the ranks find them: each makes its branches of the list that it was sent.
std::vector<Edge> edges(const Tree& tree, std::size_t count, std::span<const std::uint16_t> groups = {});

// "flat", "chain", "binary", "binomial", "4-ary", "8-nomial", with "delegate-", "two-level-" or "split3-" before it.
// Throws std::invalid_argument, naming the kinds, for other text.
Tree parse_tree(std::string_view text);
std::string format_tree(const Tree& tree);

}  // namespace elbowroom::broadcast
