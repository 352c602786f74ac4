#include "kernels/graph.hpp"

namespace elbowroom::kernels {

bool Graph::add(const std::vector<Use>& uses) {
  const Node node = nodes_.size();
  nodes_.emplace_back();
  ++left_;
  for (const auto& [datum, writes] : uses) {
    if (datum >= data_.size()) {
      data_.resize(datum + 1);
    }
    State& state = data_[datum];
    if (state.written) {
      wait(node, state.writer);
    }
    if (!writes) {
      state.readers.push_back(node);
      continue;
    }
    for (const Node reader : state.readers) {
      wait(node, reader);
    }
    state = {true, node, {}};
  }
  return nodes_[node].waits == 0;
}

void Graph::wait(Node node, Node before) {
  if (node != before && !nodes_[before].done) {
    nodes_[before].followers.push_back(node);
    ++nodes_[node].waits;
  }
}

std::vector<Graph::Node> Graph::done(Node node) {
  nodes_[node].done = true;
  --left_;
  std::vector<Node> ready;
  for (const Node follower : nodes_[node].followers) {
    if (--nodes_[follower].waits == 0) {
      ready.push_back(follower);
    }
  }
  return ready;
}

void Graph::clear() {
  nodes_.clear();
  data_.clear();
}

}  // namespace elbowroom::kernels
