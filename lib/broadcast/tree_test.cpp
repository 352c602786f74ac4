#include "tree.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <stdexcept>

using namespace elbowroom::broadcast;

namespace {

struct Visit {
  std::size_t recipient;
  int depth;
  int step;  // with one send at a time, each taking one step
};

// Walks the tree as ranks do: each makes its branches of the list that it was sent.
std::vector<Visit> walk(const Tree& root_tree, std::size_t count, const std::vector<std::uint16_t>& groups = {}) {
  std::vector<Visit> visits;
  std::function<void(const Tree&, const std::vector<std::size_t>&, std::uint16_t, int, int)> serve =
      [&](const Tree& tree, const std::vector<std::size_t>& list, std::uint16_t group, int depth, int step) {
        std::vector<std::uint16_t> list_groups;
        for (const std::size_t recipient : list) {
          if (!groups.empty()) list_groups.push_back(groups[recipient]);
        }
        for (const Branch& branch : branches(tree, list.size(), list_groups, group)) {
          const std::size_t child = list[branch.child];
          visits.push_back({child, depth + 1, ++step});
          std::vector<std::size_t> sublist;
          for (const std::size_t place : branch.subtree) sublist.push_back(list[place]);
          serve(branch.tree, sublist, groups.empty() ? 0 : groups[child], depth + 1, step);
        }
      };
  std::vector<std::size_t> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = i;
  serve(root_tree, all, 0, 0, 0);
  return visits;
}

int last_step(const std::vector<Visit>& visits) {
  int last = 0;
  for (const Visit& visit : visits) last = std::max(last, visit.step);
  return last;
}

const char* const kAll[] = {"flat",          "chain",           "binary",           "3-ary",
                            "binomial",      "3-nomial",        "8-nomial",         "delegate-binary",
                            "split3-binary", "two-level-chain", "two-level-binary", "delegate-two-level-binomial",
                            "1000-ary"};

}  // namespace

TEST_CASE("Every tree serves each recipient once, whatever their number") {
  for (const char* text : kAll) {
    for (std::size_t count = 0; count <= 200; ++count) {
      std::vector<std::uint16_t> groups;
      for (std::size_t i = 0; i < count; ++i) groups.push_back(static_cast<std::uint16_t>(i * 7 % 5));
      std::set<std::size_t> served;
      for (const Visit& visit : walk(parse_tree(text), count, groups)) {
        CHECK_MESSAGE(served.insert(visit.recipient).second, text);
      }
      CHECK_MESSAGE(served.size() == count, text);
    }
  }
}

TEST_CASE("Recipients that come first in the list are not deeper than later ones") {
  for (const char* text : {"flat", "chain", "binary", "5-ary", "delegate-3-ary"}) {
    for (const std::size_t count : {1U, 6U, 38U, 195U}) {
      std::vector<int> depth(count);
      for (const Visit& visit : walk(parse_tree(text), count)) depth[visit.recipient] = visit.depth;
      CHECK(std::is_sorted(depth.begin(), depth.end()));
    }
  }
}

TEST_CASE("A k-nomial tree serves the recipients in the order of the list, in a logarithmic number of steps") {
  for (const std::size_t count : {1U, 6U, 38U, 195U, 1000U}) {
    std::vector<int> step(count);
    for (const Visit& visit : walk(parse_tree("binomial"), count)) step[visit.recipient] = visit.step;
    CHECK(std::is_sorted(step.begin(), step.end()));
    int rounds = 0;
    while ((std::size_t{1} << rounds) < count + 1) ++rounds;
    CHECK(step.back() == rounds);
  }
}

TEST_CASE("Trees for six recipients have the steps of the thesis") {
  CHECK(last_step(walk(parse_tree("flat"), 6)) == 6);      // Fig. 4.1a
  CHECK(last_step(walk(parse_tree("binary"), 6)) == 4);    // Fig. 4.1b: one more than the binomial tree
  CHECK(last_step(walk(parse_tree("binomial"), 6)) == 3);  // Fig. 4.1c
}

TEST_CASE("Trees for 195 recipients have the depths of the thesis") {
  int deepest = 0;
  for (const Visit& visit : walk(parse_tree("binary"), 195)) deepest = std::max(deepest, visit.depth);
  CHECK(deepest == 7);                                       // section 4.5.1: a binary tree has 7 levels
  CHECK(last_step(walk(parse_tree("binomial"), 195)) == 8);  // a binomial tree has 8 steps
}

TEST_CASE("A tree of two levels enters each group once") {
  std::vector<std::uint16_t> groups;
  for (std::size_t i = 0; i < 40; ++i) groups.push_back(static_cast<std::uint16_t>(i % 4));
  int between = 0;
  std::function<void(const Tree&, std::vector<std::size_t>, std::uint16_t)> serve =
      [&](const Tree& tree, const std::vector<std::size_t>& list, std::uint16_t group) {
        std::vector<std::uint16_t> of_list;
        for (const std::size_t recipient : list) of_list.push_back(groups[recipient]);
        for (const Branch& branch : branches(tree, list.size(), of_list, group)) {
          const std::size_t child = list[branch.child];
          between += groups[child] != group ? 1 : 0;
          std::vector<std::size_t> sublist;
          for (const std::size_t place : branch.subtree) sublist.push_back(list[place]);
          serve(branch.tree, sublist, groups[child]);
        }
      };
  std::vector<std::size_t> all(40);
  for (std::size_t i = 0; i < 40; ++i) all[i] = i;
  serve(parse_tree("two-level-binomial"), all, 0);
  CHECK(between == 3);
}

TEST_CASE("The second part of a split tree waits for the first") {
  int first = 0;
  for (const Branch& branch : branches(parse_tree("split4-binomial"), 10)) {
    CHECK(branch.stage == (branch.child < 4 ? 0 : 1));
    for (const std::size_t place : branch.subtree) CHECK((place < 4) == (branch.child < 4));
    first += branch.stage == 0 ? 1 : 0;
  }
  CHECK(first == 3);
}

TEST_CASE("Every kind of tree is read as it is written") {
  for (const char* text : kAll) CHECK(format_tree(parse_tree(text)) == text);
  CHECK(format_tree(parse_tree("1-ary")) == "chain");
  CHECK(format_tree(parse_tree("2-nomial")) == "binomial");
}

TEST_CASE("What is no kind of tree is refused") {
  for (const char* text : {"", "tree", "0-ary", "1-nomial", "2-", "split-flat", "split0-flat", "70000-ary", "flat2"}) {
    CHECK_THROWS_AS(parse_tree(text), std::invalid_argument);
  }
}
