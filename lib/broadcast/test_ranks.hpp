// Ranks of an engine each over a loopback network, for tests.
#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "engine.hpp"
#include "test_loopback.hpp"

namespace elbowroom::broadcast {

// Ranks over a loopback network, each with an engine and a buffer per message.
struct Ranks {
  explicit Ranks(int size, const Settings& settings = {}, std::uint64_t seed = 1, bool jitter = true)
      : network(size, seed, jitter) {
    for (int rank = 0; rank < size; ++rank) {
      engines.push_back(std::make_unique<Engine>(network.endpoint(rank), settings));
      events.emplace_back();
    }
  }

  void run() {
    collect();
    for (int rank = network.step(); rank >= 0; rank = network.step()) {
      engines[static_cast<std::size_t>(rank)]->progress();
      collect();
    }
  }

  void collect() {
    for (std::size_t rank = 0; rank < engines.size(); ++rank) {
      while (auto event = engines[rank]->next_event()) {
        times.push_back({static_cast<int>(rank), event->kind, network.now()});
        events[rank].push_back(std::move(*event));
      }
    }
  }

  int count(int rank, Event::Kind kind) const {
    int result = 0;
    for (const Event& event : events[static_cast<std::size_t>(rank)]) result += event.kind == kind ? 1 : 0;
    return result;
  }

  Operation receive(int rank, int root, std::size_t size) {
    buffers.emplace_back(size);
    return engines[static_cast<std::size_t>(rank)]->receive({0, root, 0}, buffers.back());
  }

  Operation send(int root, std::size_t size, const std::vector<Destination>& destinations, const char* tree = "binary",
                 std::size_t segment = 0) {
    buffers.emplace_back(size, std::byte{7});
    return engines[static_cast<std::size_t>(root)]->send(0, 0, buffers.back(), destinations,
                                                         {parse_tree(tree), segment});
  }

  struct Time {
    int rank;
    Event::Kind kind;
    double at;
  };
  LoopbackNetwork network;
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<std::vector<Event>> events;
  std::vector<Time> times;
  std::deque<std::vector<std::byte>> buffers;
};

inline std::vector<Destination> all_but(int root, int size) {
  std::vector<Destination> result;
  for (int rank = 0; rank < size; ++rank) {
    if (rank != root) result.push_back({rank, 0});
  }
  return result;
}

}  // namespace elbowroom::broadcast
