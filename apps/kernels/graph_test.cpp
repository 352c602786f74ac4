#include "kernels/graph.hpp"

#include <doctest/doctest.h>

namespace elbowroom::kernels {
namespace {

constexpr Datum kA = 0;
constexpr Datum kB = 1;

TEST_CASE("readers of what one task writes wait for it, and not for each other") {
  Graph graph;
  CHECK(graph.add({{kA, true}}));
  CHECK_FALSE(graph.add({{kA, false}}));
  CHECK_FALSE(graph.add({{kA, false}, {kB, true}}));
  CHECK(graph.done(0) == std::vector<Graph::Node>{1, 2});
  CHECK(graph.left() == 2);
}

TEST_CASE("who writes waits for those that read what was there before") {
  Graph graph;
  CHECK(graph.add({{kA, false}}));
  CHECK(graph.add({{kA, false}}));
  CHECK_FALSE(graph.add({{kA, true}}));
  CHECK(graph.done(1).empty());
  CHECK(graph.done(0) == std::vector<Graph::Node>{2});
  CHECK(graph.done(2).empty());
  CHECK(graph.left() == 0);
}

TEST_CASE("what is done already is not waited for, and a chain of writers stays in order") {
  Graph graph;
  CHECK(graph.add({{kA, true}}));
  CHECK(graph.done(0).empty());
  CHECK(graph.add({{kA, true}}));
  CHECK_FALSE(graph.add({{kA, true}}));
  CHECK_FALSE(graph.add({{kA, true}}));
  CHECK(graph.done(1) == std::vector<Graph::Node>{2});
  CHECK(graph.done(2) == std::vector<Graph::Node>{3});
}

TEST_CASE("a task that reads and writes through two names waits once for each") {
  Graph graph;
  CHECK(graph.add({{kA, true}, {kB, true}}));
  CHECK_FALSE(graph.add({{kA, false}, {kB, true}}));
  CHECK(graph.done(0) == std::vector<Graph::Node>{1});
  graph.clear();
  CHECK(graph.add({{kA, false}}));
}

}  // namespace
}  // namespace elbowroom::kernels
