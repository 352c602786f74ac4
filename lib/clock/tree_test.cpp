#include "tree.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace elbowroom::clock;

TEST_CASE("1024 clocks need ten rounds, one clock none") {
  CHECK(rounds(1) == 0);
  CHECK(rounds(2) == 1);
  CHECK(rounds(3) == 2);
  CHECK(rounds(1024) == 10);
  CHECK(rounds(1025) == 11);
}

TEST_CASE(
    "Every clock but the reference is told once, by one that is known already; none is in two meetings of a round") {
  for (const int count : {1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 100, 1000, 1024}) {
    CAPTURE(count);
    std::map<int, int> round_of;                            // clock -> round
    std::map<std::pair<int, int>, std::set<int>> partners;  // (round, asker) -> answerers
    for (int number = 0; number < count; ++number) {
      std::set<int> busy;
      for (const Meeting& meeting : meetings(number, count)) {
        CHECK(busy.insert(meeting.round).second);
        CHECK(meeting.peer >= 0);
        CHECK(meeting.peer < count);
        if (meeting.asks) {
          partners[{meeting.round, number}].insert(meeting.peer);
        } else {
          CHECK(round_of.emplace(number, meeting.round).second);
        }
      }
    }
    CHECK(static_cast<int>(round_of.size()) == count - 1);
    for (int number = 0; number < count; ++number) {
      for (const Meeting& meeting : meetings(number, count)) {
        if (!meeting.asks) {
          CHECK((partners[{meeting.round, meeting.peer}].count(number)) == 1);
          CHECK((meeting.peer == 0 || round_of.at(meeting.peer) < meeting.round));
        }
        CHECK(meeting.round < rounds(count));
      }
    }
  }
}
