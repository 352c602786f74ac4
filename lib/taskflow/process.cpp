#include "process.hpp"

#include <stdexcept>
#include <vector>

namespace elbowroom::taskflow {

Operation Process::send(Data data, std::span<const std::byte> memory, std::span<const Destination> recipients) {
  std::vector<broadcast::Destination> list;
  list.reserve(recipients.size());
  for (const auto& [rank, priority] : recipients) list.push_back({rank, priority});
  return engine_.send(0, data, memory, list, way_);
}

bool Process::progress() {
  bool any = engine_.progress();
  while (const auto event = engine_.next_event()) {
    any = true;
    switch (event->kind) {
      case broadcast::Event::Kind::kReceived: graph_.received(event->operation); break;
      case broadcast::Event::Kind::kReleased: graph_.released(event->operation); break;
      case broadcast::Event::Kind::kFailed:
      case broadcast::Event::Kind::kLost:
        throw std::runtime_error("process " + std::to_string(event->rank) + ": " + event->text);
    }
  }
  return any;
}

}  // namespace elbowroom::taskflow
