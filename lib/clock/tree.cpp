#include "tree.hpp"

namespace elbowroom::clock {

int rounds(int count) {
  int found = 0;
  while (found < 31 && (1LL << found) < count) {
    ++found;
  }
  return found;
}

std::vector<Meeting> meetings(int number, int count) {
  std::vector<Meeting> found;
  for (int round = 0; round < rounds(count); ++round) {
    const long long known = 1LL << round;  // clocks that are known when the round begins
    if (number >= 2 * known) {
      continue;
    }
    if (number >= known) {
      found.push_back({round, static_cast<int>(number - known), false});
    } else if (number + known < count) {
      found.push_back({round, static_cast<int>(number + known), true});
    }
  }
  return found;
}

}  // namespace elbowroom::clock
