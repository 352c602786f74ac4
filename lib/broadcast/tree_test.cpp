#include "tree.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <stdexcept>

using namespace elbowroom::broadcast;

namespace {

int last_step(const char* tree, std::size_t count) {
  int last = 0;
  for (const Edge& edge : edges(parse_tree(tree), count)) last = std::max(last, edge.step);
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
      std::set<int> served;
      for (const Edge& edge : edges(parse_tree(text), count, groups)) {
        CHECK_MESSAGE(served.insert(edge.to).second, text);
      }
      CHECK_MESSAGE(served.size() == count, text);
    }
  }
}

TEST_CASE("Recipients that come first in the list are not deeper than later ones") {
  for (const char* text : {"flat", "chain", "binary", "5-ary", "delegate-3-ary"}) {
    for (const std::size_t count : {1U, 6U, 38U, 195U}) {
      std::vector<int> depth(count);
      for (const Edge& edge : edges(parse_tree(text), count)) depth[static_cast<std::size_t>(edge.to)] = edge.depth;
      CHECK(std::is_sorted(depth.begin(), depth.end()));
    }
  }
}

TEST_CASE("A k-nomial tree serves the recipients in the order of the list, in a logarithmic number of steps") {
  for (const std::size_t count : {1U, 6U, 38U, 195U, 1000U}) {
    std::vector<int> step(count);
    for (const Edge& edge : edges(parse_tree("binomial"), count)) step[static_cast<std::size_t>(edge.to)] = edge.step;
    CHECK(std::is_sorted(step.begin(), step.end()));
    int rounds = 0;
    while ((std::size_t{1} << rounds) < count + 1) ++rounds;
    CHECK(step.back() == rounds);
  }
}

TEST_CASE("Trees for six recipients have the steps of the thesis") {
  CHECK(last_step("flat", 6) == 6);      // Fig. 4.1a
  CHECK(last_step("binary", 6) == 4);    // Fig. 4.1b: one more than the binomial tree
  CHECK(last_step("binomial", 6) == 3);  // Fig. 4.1c
}

TEST_CASE("Trees for 195 recipients have the depths of the thesis") {
  int deepest = 0;
  for (const Edge& edge : edges(parse_tree("binary"), 195)) deepest = std::max(deepest, edge.depth);
  CHECK(deepest == 7);                     // section 4.5.1: a binary tree has 7 levels
  CHECK(last_step("binomial", 195) == 8);  // a binomial tree has 8 steps
}

TEST_CASE("A tree of two levels enters each group once") {
  std::vector<std::uint16_t> groups;
  for (std::size_t i = 0; i < 40; ++i) groups.push_back(static_cast<std::uint16_t>(i % 4));
  int between = 0;
  for (const Edge& edge : edges(parse_tree("two-level-binomial"), groups.size(), groups)) {
    const std::uint16_t from = edge.from < 0 ? std::uint16_t{0} : groups[static_cast<std::size_t>(edge.from)];
    between += groups[static_cast<std::size_t>(edge.to)] != from ? 1 : 0;
  }
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
