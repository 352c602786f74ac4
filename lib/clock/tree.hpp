// Who compares clocks with whom, and when: a binomial tree, so that `count` clocks need log2(count) rounds.
#pragma once

#include <vector>

namespace elbowroom::clock {

// In one round this process compares its clock with `peer`'s: it asks (its own clock is known already), or answers and
// is told how far it is from the root.
struct Meeting {
  int round;
  int peer;
  bool asks;
};

// Rounds that `count` clocks need: the smallest r with 2^r >= count.
int rounds(int count);

// The meetings of clock `number` of `count`, in order of their rounds. Clock 0 is the reference. In each round all pairs
// meet at once, and no clock is in two.
std::vector<Meeting> meetings(int number, int count);

}  // namespace elbowroom::clock
