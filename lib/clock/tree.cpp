#include "tree.hpp"

namespace elbowroom::clock {

int rounds(int count) {
  int result = 0;
  while (result < 31 && (1LL << result) < count) {
    ++result;
  }
  return result;
}

std::vector<Meeting> meetings(int number, int count) {
  std::vector<Meeting> result;
  for (int round = 0; round < rounds(count); ++round) {
    const long long known = 1LL << round;  // clocks that are known when the round begins
    if (number >= 2 * known) {
      continue;
    }
    if (number >= known) {
      result.push_back({round, static_cast<int>(number - known), false});
    } else if (number + known < count) {
      result.push_back({round, static_cast<int>(number + known), true});
    }
  }
  return result;
}

}  // namespace elbowroom::clock
