#include "pmpi/matching.hpp"

#include <doctest/doctest.h>

namespace elbowroom::pmpi {
namespace {

std::optional<std::pair<int, int>> unknown(const Posted&, std::uintptr_t) { return std::nullopt; }

TEST_CASE("messages are numbered by destination and tag") {
  Counts sent;
  CHECK(sent.next(1, 5) == 1);
  CHECK(sent.next(1, 5) == 2);
  CHECK(sent.next(1, 6) == 1);
  CHECK(sent.next(2, 5) == 1);
}

TEST_CASE("receives that complete in another order have the numbers of their posting") {
  Matching matching;
  const Posted first = matching.post(1, 5);
  const Posted second = matching.post(1, 5);
  const Posted third = matching.post(1, 5);
  CHECK(matching.complete(third, 1, 5, unknown) == 3);
  CHECK(matching.complete(first, 1, 5, unknown) == 1);
  CHECK(matching.complete(second, 1, 5, unknown) == 2);
  const Posted fourth = matching.post(1, 5);
  CHECK(matching.complete(fourth, 1, 5, unknown) == 4);
  CHECK(matching.swapped() == 0);
}

TEST_CASE("a receive that was cancelled took nothing") {
  Matching matching;
  const Posted cancelled = matching.post(1, 5);
  const Posted next = matching.post(1, 5);
  matching.cancel(cancelled);
  CHECK(matching.complete(next, 1, 5, unknown) == 1);
}

TEST_CASE("a receive from anybody is counted with the sender that it got something of") {
  Matching matching;
  const Posted any = matching.post(kAny, kAny);
  const Posted exact = matching.post(2, 5);
  CHECK(matching.complete(any, 1, 5, unknown) == 1);
  CHECK(matching.complete(exact, 2, 5, unknown) == 1);
}

TEST_CASE("a receive from anybody that has the first message is asked before the second is numbered") {
  Matching matching;
  const Posted any = matching.post(kAny, 5);
  matching.name(any, 77);
  const Posted exact = matching.post(2, 5);
  const auto has = [](const Posted&, std::uintptr_t request) -> std::optional<std::pair<int, int>> {
    CHECK(request == 77);
    return std::pair(2, 5);
  };
  CHECK(matching.complete(exact, 2, 5, has) == 2);
  CHECK(matching.complete(any, 2, 5, unknown) == 1);
  CHECK(matching.swapped() == 0);
}

TEST_CASE("one that does not tell, and was the first after all, has the other's number, which is counted") {
  Matching matching;
  const Posted any = matching.post(kAny, 5);
  matching.name(any, 77);
  const Posted exact = matching.post(2, 5);
  CHECK(matching.complete(exact, 2, 5, unknown) == 1);
  CHECK(matching.complete(any, 2, 5, unknown) == 2);
  CHECK(matching.swapped() == 1);
}

TEST_CASE("a receive from anybody that was posted later took nothing from an earlier one") {
  Matching matching;
  const Posted exact = matching.post(2, 5);
  const Posted any = matching.post(kAny, 5);
  matching.name(any, 77);
  CHECK(matching.complete(exact, 2, 5, [](const Posted&, std::uintptr_t) { return std::pair(2, 5); }) == 1);
  CHECK(matching.complete(any, 2, 5, unknown) == 2);
}

TEST_CASE("a blocking receive counts those that are pending before it") {
  Matching matching;
  const Posted pending = matching.post(2, 5);
  CHECK(matching.complete(matching.place(2, 5), 2, 5, unknown) == 2);
  CHECK(matching.complete(pending, 2, 5, unknown) == 1);
}

TEST_CASE("numbers go on for streams that were idle among thousands of others") {
  Matching matching;
  const Posted any = matching.post(kAny, 3);  // pending all the time
  for (int round = 1; round <= 3; ++round) {
    for (int tag = 10; tag < 10 + 4 * static_cast<int>(Matching::kFewStreams); ++tag) {
      const Posted receive = matching.post(2, tag);
      REQUIRE(matching.complete(receive, 2, tag, unknown) == static_cast<std::uint32_t>(round));
    }
  }
  CHECK(matching.complete(any, 2, 3, unknown) == 1);
}

TEST_CASE("a receive that is pending keeps its place among thousands of other streams") {
  Matching matching;
  const Posted first = matching.post(2, 5);
  const Posted second = matching.post(2, 5);
  CHECK(matching.complete(second, 2, 5, unknown) == 2);
  for (int tag = 10; tag < 10 + 4 * static_cast<int>(Matching::kFewStreams); ++tag) {
    CHECK(matching.complete(matching.post(2, tag), 2, tag, unknown) == 1);
  }
  CHECK(matching.complete(first, 2, 5, unknown) == 1);
  CHECK(matching.complete(matching.place(2, 5), 2, 5, unknown) == 3);
}

}  // namespace
}  // namespace elbowroom::pmpi
