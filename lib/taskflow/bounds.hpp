// What a factorization takes at least, without simulating it: the time of each resource by itself.
#pragma once

#include <optional>
#include <vector>

#include "broadcast/flows.hpp"
#include "broadcast/tree.hpp"
#include "factorization.hpp"

namespace elbowroom::taskflow {

struct Costs {
  std::vector<double> times;  // s of a task, by step
  std::size_t workers = 1;    // of a process
  std::size_t tile = 0;       // bytes
  std::size_t factor = 0;     // bytes of a T
  broadcast::Network network;
  std::optional<broadcast::Tree> tree;  // none: the owner sends to each recipient

  broadcast::Tree shape() const { return tree.value_or(broadcast::Tree{broadcast::Shape::kFlat, 2, false, false, 0}); }
};

struct Bounds {
  double work = 0;   // s of the tasks of the busiest process on its workers
  double links = 0;  // s of the bytes of the busiest link
  // s of the longest chain of tasks and of messages, each as if its links carried no other data; a task that writes waits
  // until the version before has left its process.
  double path = 0;
};

Bounds find_bounds(const Problem& problem, const Costs& costs);

// Seconds of a schedule of the tasks and messages: ready tasks take free workers in order of priority, and each node's link
// carries one message at a time, that of the highest priority first. No protocol, and no links that messages share.
double find_schedule(const Problem& problem, const Costs& costs);

}  // namespace elbowroom::taskflow
