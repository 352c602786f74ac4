#include "tree.hpp"

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>
#include <numeric>
#include <stdexcept>

namespace elbowroom::broadcast {
namespace {

// The node has place 0 and recipient i of the list place i + 1; place p forwards to places p * arity + 1 and on.
std::vector<Branch> kary(const Tree& tree, std::size_t count) {
  const std::size_t arity = tree.arity;
  std::vector<Branch> result;
  for (std::size_t child = 1; child <= std::min(count, arity); ++child) {
    Branch branch{child - 1, {}, tree, 0};
    std::size_t first = child * arity + 1;
    std::size_t last = child * arity + arity;
    while (first <= count) {
      for (std::size_t place = first; place <= std::min(last, count); ++place) branch.subtree.push_back(place - 1);
      first = first * arity + 1;
      last = last * arity + arity;
    }
    result.push_back(std::move(branch));
  }
  return result;
}

// In round r the places below arity^r have the data, and place p sends to p + d * arity^r for d from 1 to arity - 1: places
// are served in their order.
std::vector<Branch> knomial(const Tree& tree, std::size_t count) {
  std::vector<Branch> result;
  for (std::size_t step = 1; step <= count; step *= tree.arity) {
    for (std::size_t child = step; child < step * tree.arity && child <= count; child += step) {
      Branch branch{child - 1, {}, tree, 0};
      for (std::size_t place = child + step * tree.arity; place <= count; place += step * tree.arity) {
        branch.subtree.push_back(place - 1);
      }
      result.push_back(std::move(branch));
    }
  }
  return result;
}

std::vector<Branch> plain(const Tree& tree, std::size_t count) {
  if (tree.shape == Shape::kKary) return kary(tree, count);
  if (tree.shape == Shape::kKnomial) return knomial(tree, count);
  std::vector<Branch> result;
  for (std::size_t child = 0; child < count; ++child) result.push_back({child, {}, tree, 0});
  return result;
}

// A tree over some places of the list, told in places of the whole list.
std::vector<Branch> of_places(const Tree& tree, const std::vector<std::size_t>& places) {
  std::vector<Branch> result = plain(tree, places.size());
  for (Branch& branch : result) {
    branch.child = places[branch.child];
    for (std::size_t& place : branch.subtree) place = places[place];
  }
  return result;
}

// A tree over the first recipient of each other group, which take their groups with them, and one over the own group.
std::vector<Branch> two_level(const Tree& tree, std::span<const std::uint16_t> groups, std::uint16_t own_group) {
  std::vector<std::size_t> own;
  std::vector<std::size_t> leaders;
  std::map<std::uint16_t, std::vector<std::size_t>> members;  // without the leader
  for (std::size_t place = 0; place < groups.size(); ++place) {
    if (groups[place] == own_group) {
      own.push_back(place);
    } else if (const auto [group, is_new] = members.try_emplace(groups[place]); is_new) {
      leaders.push_back(place);
    } else {
      group->second.push_back(place);
    }
  }
  std::vector<Branch> result = of_places(tree, leaders);
  for (Branch& branch : result) {
    const std::vector<std::size_t> below = branch.subtree;
    branch.subtree.insert(branch.subtree.end(), members[groups[branch.child]].begin(),
                          members[groups[branch.child]].end());
    for (const std::size_t leader : below) {
      branch.subtree.insert(branch.subtree.end(), members[groups[leader]].begin(), members[groups[leader]].end());
    }
  }
  std::vector<Branch> local = of_places(tree, own);
  std::move(local.begin(), local.end(), std::back_inserter(result));
  return result;
}

std::vector<Branch> split(Tree tree, std::size_t count, std::span<const std::uint16_t> groups,
                          std::uint16_t own_group) {
  const std::size_t first = tree.split;
  tree.split = 0;
  if (first >= count) return branches(tree, count, groups, own_group);
  const auto part = [&](std::size_t from, std::size_t many, int stage) {
    std::vector<Branch> result = branches(tree, many, groups.empty() ? groups : groups.subspan(from, many), own_group);
    for (Branch& branch : result) {
      branch.child += from;
      for (std::size_t& place : branch.subtree) place += from;
      branch.stage = stage;
    }
    return result;
  };
  std::vector<Branch> result = part(0, first, 0);
  std::vector<Branch> later = part(first, count - first, 1);
  std::move(later.begin(), later.end(), std::back_inserter(result));
  return result;
}

constexpr std::string_view kKinds = "flat, chain, binary, binomial, K-ary or K-nomial";

Shape shape_behind(std::string_view suffix) {
  if (suffix == "-ary") return Shape::kKary;
  if (suffix == "-nomial") return Shape::kKnomial;
  throw std::invalid_argument("is not a kind of tree: use " + std::string(kKinds));
}

unsigned number_before(std::string_view text, std::string_view& rest) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value > UINT16_MAX) {
    throw std::invalid_argument("is not a kind of tree: use " + std::string(kKinds));
  }
  rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

std::vector<Branch> branches(const Tree& tree, std::size_t count, std::span<const std::uint16_t> groups,
                             std::uint16_t own_group) {
  if (count == 0) return {};
  if (tree.split != 0) return split(tree, count, groups, own_group);
  if (tree.delegate) {
    Branch branch{0, {}, tree, 0};
    branch.tree.delegate = false;
    for (std::size_t place = 1; place < count; ++place) branch.subtree.push_back(place);
    return {branch};
  }
  if (tree.two_level && !groups.empty()) return two_level(tree, groups, own_group);
  return plain(tree, count);
}

std::vector<Edge> edges(const Tree& tree, std::size_t count, std::span<const std::uint16_t> groups) {
  struct Node {
    Edge by;  // the message that brings the data
    Tree tree;
    std::vector<std::size_t> list;
  };
  std::vector<Edge> result;
  std::deque<Node> waiting{{Edge{-1, -1, 0, 0}, tree, std::vector<std::size_t>(count)}};
  std::iota(waiting.front().list.begin(), waiting.front().list.end(), std::size_t{0});
  for (; !waiting.empty(); waiting.pop_front()) {
    const Node& node = waiting.front();
    std::vector<std::uint16_t> of_list;
    if (!groups.empty()) {
      for (const std::size_t place : node.list) of_list.push_back(groups[place]);
    }
    const auto own = static_cast<std::size_t>(node.by.to);
    const std::uint16_t group = node.by.to < 0 || groups.empty() ? std::uint16_t{0} : groups[own];
    int step = node.by.step;
    for (const Branch& branch : branches(node.tree, node.list.size(), of_list, group)) {
      const auto child = static_cast<int>(node.list[branch.child]);
      result.push_back({node.by.to, child, node.by.depth + 1, ++step});
      std::vector<std::size_t> sublist;
      for (const std::size_t place : branch.subtree) sublist.push_back(node.list[place]);
      waiting.push_back({result.back(), branch.tree, std::move(sublist)});
    }
  }
  return result;
}

Tree parse_tree(std::string_view text) {
  Tree tree;
  const auto skip = [&text](std::string_view word) {
    if (!text.starts_with(word)) return false;
    text.remove_prefix(word.size());
    return true;
  };
  if (skip("split")) {
    tree.split = static_cast<std::uint16_t>(number_before(text, text));
    if (tree.split == 0 || !skip("-")) throw std::invalid_argument("needs a number and a kind: split3-binary");
  }
  tree.delegate = skip("delegate-");
  tree.two_level = skip("two-level-");
  if (text == "flat") {
    tree.shape = Shape::kFlat;
  } else if (text == "chain") {
    tree.shape = Shape::kKary;
    tree.arity = 1;
  } else if (text == "binary") {
    tree.shape = Shape::kKary;
  } else if (text != "binomial") {
    std::string_view suffix;
    tree.arity = static_cast<std::uint16_t>(number_before(text, suffix));
    tree.shape = shape_behind(suffix);
    if (tree.arity < (tree.shape == Shape::kKary ? 1 : 2)) {
      throw std::invalid_argument("has too small an arity: a K-ary tree needs 1, a K-nomial one 2");
    }
  }
  return tree;
}

std::string format_tree(const Tree& tree) {
  std::string text;
  if (tree.split != 0) text += "split" + std::to_string(tree.split) + "-";
  if (tree.delegate) text += "delegate-";
  if (tree.two_level) text += "two-level-";
  if (tree.shape == Shape::kFlat) return text + "flat";
  if (tree.shape == Shape::kKary && tree.arity == 1) return text + "chain";
  if (tree.arity == 2) return text + (tree.shape == Shape::kKary ? "binary" : "binomial");
  return text + std::to_string(tree.arity) + (tree.shape == Shape::kKary ? "-ary" : "-nomial");
}

}  // namespace elbowroom::broadcast
