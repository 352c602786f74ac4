#include "kernels/links.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using namespace elbowroom;

TEST_CASE("links visit every line once before they return to the first") {
  for (const std::size_t lines : {1U, 2U, 3U, 1000U}) {
    std::vector<std::uint64_t> memory(lines * kLinkBytes / sizeof(std::uint64_t));
    link_lines(memory.data(), lines, 7);
    std::vector<bool> visited(lines, false);
    std::uint64_t line = 0;
    for (std::size_t i = 0; i < lines; ++i) {
      CHECK_FALSE(visited[line]);
      visited[line] = true;
      line = follow_links(memory.data(), line, 1);
    }
    CHECK(line == 0);
    CHECK(follow_links(memory.data(), 0, lines) == 0);
  }
}

TEST_CASE("the order of links depends on the seed") {
  constexpr std::size_t kLines = 100;
  std::vector<std::uint64_t> one(kLines * 8);
  std::vector<std::uint64_t> other(kLines * 8);
  link_lines(one.data(), kLines, 1);
  link_lines(other.data(), kLines, 2);
  CHECK(one != other);
}
