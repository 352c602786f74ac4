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
};

struct Bounds {
  double work = 0;   // s of the tasks of the busiest process on its workers
  double links = 0;  // s of the bytes of the busiest link
  double path = 0;   // s of the longest chain of tasks and of messages, each as if its links carried no other data
};

Bounds find_bounds(const Problem& problem, const Costs& costs);

}  // namespace elbowroom::taskflow
