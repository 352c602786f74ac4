#include "pmpi/operations.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <vector>

namespace elbowroom::pmpi {
namespace {

using Table = OperationTable<int>;

constexpr Handle c(std::uintptr_t key) { return {Language::c, key}; }
constexpr Handle fortran(std::uintptr_t key) { return {Language::fortran, key}; }

void add(Table& table, int operation, std::uintptr_t key, std::uintptr_t key_in_fortran = 0) {
  Table::Entry& entry = table.make();
  entry.operation = operation;
  table.add(entry, key, key_in_fortran);
}

int remove(Table& table, Table::Entry* entry) {
  REQUIRE(entry != nullptr);
  return table.remove(*entry);
}

TEST_CASE("an operation is found by its handle until it is removed") {
  Table table;
  CHECK(table.empty());
  CHECK(table.find(c(7)) == nullptr);
  add(table, 70, 7);
  CHECK(remove(table, table.find(c(7))) == 70);
  CHECK(table.find(c(7)) == nullptr);
  CHECK(table.empty());
}

TEST_CASE("an operation that is about to be posted is not found, and can be dropped") {
  Table table;
  Table::Entry& entry = table.make();
  entry.operation = 70;
  int seen = 0;
  table.for_each([&](int) { ++seen; });
  CHECK(seen == 0);
  CHECK(table.empty());
  table.release(entry);
  CHECK(&table.make() == &entry);
  CHECK(entry.operation == 0);
}

TEST_CASE("an operation is found by its handles of both languages, and by neither once it is removed") {
  Table table;
  add(table, 1, 7, 3);
  add(table, 2, 3, 7);
  add(table, 3, 9);
  CHECK(table.find(fortran(9)) == nullptr);
  CHECK(table.find(c(3))->operation == 2);
  CHECK(table.find(fortran(3))->operation == 1);
  table.name(*table.find(c(9)), 4);
  table.name(*table.find(c(9)), 5);  // it has one
  CHECK(table.find(fortran(4))->operation == 3);
  CHECK(table.find(fortran(5)) == nullptr);
  CHECK(remove(table, table.find(fortran(3))) == 1);
  CHECK(table.find(c(7)) == nullptr);
  CHECK(remove(table, table.find(c(3))) == 2);
  CHECK(table.find(fortran(7)) == nullptr);
}

TEST_CASE("a call finds the operation that had the handle when it began, and a later one the next") {
  Table table;
  add(table, 1, 7, 7);
  const std::uint64_t first = table.moment();
  add(table, 2, 7, 7);  // another thread's: MPI has given it the handle again
  const std::uint64_t second = table.moment();
  for (const auto handle : {c, fortran}) {
    CHECK(table.find(handle(7), first)->operation == 1);
    CHECK(table.find(handle(7), second)->operation == 2);
  }
  SUBCASE("the first thread looks first") {
    CHECK(remove(table, table.find(c(7), first)) == 1);
    CHECK(remove(table, table.find(fortran(7), second)) == 2);
  }
  SUBCASE("the second thread looks first") {
    CHECK(remove(table, table.find(fortran(7), second)) == 2);
    CHECK(remove(table, table.find(c(7), first)) == 1);
  }
  CHECK(table.empty());
}

TEST_CASE("a handle of Fortran that is known late belongs to the operation that was added first") {
  Table table;
  add(table, 1, 7);
  const std::uint64_t first = table.moment();
  add(table, 2, 8, 5);
  table.name(*table.find(c(7)), 5);
  CHECK(table.find(fortran(5), first)->operation == 1);
  CHECK(table.find(fortran(5))->operation == 2);
}

TEST_CASE("a table that grows keeps the order of operations with one handle") {
  std::mt19937 random(1);
  Table table;
  std::map<std::uintptr_t, std::vector<std::pair<std::uint64_t, int>>> expected;
  for (int i = 0; i < 5000; ++i) {
    const std::uintptr_t key = 1 + random() % 700;
    auto& same = expected[key];
    if (!same.empty() && random() % 3 == 0) {
      CHECK(remove(table, table.find(i % 2 == 0 ? c(key) : fortran(key + 1))) == same.back().second);
      same.pop_back();
    } else {
      add(table, i, key, key + 1);
      same.emplace_back(table.moment(), i);
    }
  }
  for (const auto& [key, all] : expected) {
    for (const auto& [moment, value] : all) {
      for (const Handle handle : {c(key), fortran(key + 1)}) {
        REQUIRE(table.find(handle, moment) != nullptr);
        CHECK(table.find(handle, moment)->operation == value);
      }
    }
  }
}

}  // namespace
}  // namespace elbowroom::pmpi
