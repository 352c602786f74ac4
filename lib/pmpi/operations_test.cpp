#include "pmpi/operations.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <vector>

namespace elbowroom::pmpi {
namespace {

using Table = OperationTable<int>;

TEST_CASE("an operation is found by its handle until it is removed") {
  Table table;
  CHECK(table.empty());
  CHECK(table.find(7) == nullptr);
  table.add(7, 70);
  REQUIRE(table.find(7) != nullptr);
  CHECK(table.remove(table.find(7)) == 70);
  CHECK(table.find(7) == nullptr);
  CHECK(table.empty());
}

TEST_CASE("a call finds the operation that had the handle when it began, and a later one the next") {
  Table table;
  table.add(7, 1);
  const std::uint64_t first = table.moment();
  table.add(7, 2);  // another thread's: MPI has given it the handle again
  const std::uint64_t second = table.moment();
  SUBCASE("the first thread looks first") {
    CHECK(table.remove(table.find(7, first)) == 1);
    CHECK(table.remove(table.find(7, second)) == 2);
  }
  SUBCASE("the second thread looks first") {
    CHECK(table.remove(table.find(7, second)) == 2);
    CHECK(table.remove(table.find(7, first)) == 1);
  }
  CHECK(table.empty());
}

TEST_CASE("a table that grows keeps the order of operations with one handle") {
  std::mt19937 random(1);
  Table table;
  std::map<std::uintptr_t, std::vector<std::pair<std::uint64_t, int>>> expected;
  for (int i = 0; i < 5000; ++i) {
    const std::uintptr_t key = random() % 700;
    auto& same = expected[key];
    if (!same.empty() && random() % 3 == 0) {
      CHECK(table.remove(table.find(key)) == same.back().second);
      same.pop_back();
    } else {
      table.add(key, i);
      same.emplace_back(table.moment(), i);
    }
  }
  for (const auto& [key, all] : expected) {
    for (const auto& [moment, value] : all) {
      REQUIRE(table.find(key, moment) != nullptr);
      CHECK(table.find(key, moment)->operation == value);
    }
  }
}

}  // namespace
}  // namespace elbowroom::pmpi
