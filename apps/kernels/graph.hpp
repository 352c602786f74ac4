// Who waits for whom: what is asked for in sequence may start once all that it needs, or would spoil, is done.
#pragma once

#include <cstddef>
#include <vector>

namespace elbowroom::kernels {

using Datum = std::size_t;  // a piece of memory that tasks and messages name, numbered from 0

struct Use {
  Datum datum;
  bool writes;
};

// Tasks and messages are nodes, numbered in the order in which they are asked for. A node waits for the last one before it
// that writes what it uses and, when it writes, for those that have read since: the sequential task flow of StarPU.
class Graph {
 public:
  using Node = std::size_t;

  // Returns whether the node may start at once.
  bool add(const std::vector<Use>& uses);
  // Those that may start now that this one is done.
  std::vector<Node> done(Node node);

  std::size_t size() const { return nodes_.size(); }
  std::size_t left() const { return left_; }  // not done
  void clear();                               // forgets all nodes, when none is left

 private:
  struct One {
    std::size_t waits = 0;  // for so many
    bool done = false;
    std::vector<Node> followers;
  };
  struct State {
    bool written = false;
    Node writer = 0;
    std::vector<Node> readers;  // since then
  };
  void wait(Node node, Node before);

  std::vector<One> nodes_;
  std::vector<State> data_;
  std::size_t left_ = 0;
};

}  // namespace elbowroom::kernels
