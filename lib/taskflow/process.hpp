// A process of a task graph over the engine of broadcasts, in simulations and tests: its own code runs the tasks.
#pragma once

#include <functional>
#include <span>
#include <utility>

#include "broadcast/engine.hpp"
#include "graph.hpp"

namespace elbowroom::taskflow {

class Process : public Actions {
 public:
  Process(broadcast::Transport& transport, const broadcast::Settings& settings, const broadcast::Way& way,
          const Settings& flow, Memory& memory)
      : engine_(transport, settings), graph_(*this, memory, transport.rank(), transport.size(), flow), way_(way) {}

  broadcast::Engine& engine() { return engine_; }
  Graph& graph() { return graph_; }

  // Does all that can be done now; whether anything happened. Throws std::runtime_error where an operation failed.
  bool progress();

  Operation receive(int root, Data data, std::span<std::byte> memory) override {
    return engine_.receive({0, root, data}, memory);
  }
  Operation send(Data data, std::span<const std::byte> memory, std::span<const Destination> recipients) override;

 private:
  broadcast::Engine engine_;
  Graph graph_;
  broadcast::Way way_;
};

}  // namespace elbowroom::taskflow
