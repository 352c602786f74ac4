#include "flow_transport.hpp"

#include <algorithm>

namespace elbowroom::broadcast {

FlowNetwork::FlowNetwork(const Network& network, int ranks)
    : flows_(network, ranks, true), transports_(static_cast<std::size_t>(ranks)) {}

void FlowNetwork::send_control(int from, int to, Bytes bytes) {
  flows_.post(from, to, static_cast<double>(bytes.size()), {kControl, from, static_cast<std::uint64_t>(to)});
  controls_[pair(from, to)].push_back(std::move(bytes));
}

// Data leave when both ends have named their memory.
void FlowNetwork::add_half(int from, int to, std::uint32_t channel, const Half& half) {
  const std::uint64_t key = pair(from, to) << FlowTransport::kChannelBits | channel;
  std::deque<Half>& waiting = halves_[key];
  if (waiting.empty() || waiting.front().sends == half.sends) {
    waiting.push_back(half);
    return;
  }
  const Half other = waiting.front();
  waiting.pop_front();
  if (waiting.empty()) halves_.erase(key);
  if (free_.empty()) {
    free_.push_back(static_cast<int>(transfers_.size()));
    transfers_.emplace_back();
  }
  const int transfer = free_.back();
  free_.pop_back();
  const Half& sent = half.sends ? half : other;
  const Half& received = half.sends ? other : half;
  transfers_[static_cast<std::size_t>(transfer)] = {from, to, sent.ticket, received.ticket, false};
  flows_.send(from, to, static_cast<double>(sent.bytes), {kData, transfer, 0});
}

void FlowNetwork::cancel(int rank, Ticket ticket) {
  for (auto waiting = halves_.begin(); waiting != halves_.end(); ++waiting) {
    if ((waiting->first >> FlowTransport::kChannelBits) % transports_.size() != static_cast<std::size_t>(rank))
      continue;
    const auto removed =
        std::erase_if(waiting->second, [ticket](const Half& half) { return !half.sends && half.ticket == ticket; });
    if (removed == 0) continue;
    if (waiting->second.empty()) halves_.erase(waiting);
    return;
  }
  for (Transfer& transfer : transfers_) {
    if (transfer.to == rank && transfer.received == ticket) transfer.cancelled = true;
  }
}

int FlowNetwork::next() {
  Flows::Happening happening;
  while (flows_.next(happening)) {
    const auto& [kind, edge, segment] = happening.content;
    if (kind == kWake) return edge;
    if (kind == kControl) {
      if (!happening.received) continue;
      const auto to = static_cast<int>(segment);
      // Short ones do not overtake long ones.
      std::deque<Bytes>& line = controls_[pair(edge, to)];
      transports_[segment]->inbox_.push_back({{Happening::Kind::kControl, edge, 0, {}}, std::move(line.front())});
      line.pop_front();
      return to;
    }
    Transfer& transfer = transfers_[static_cast<std::size_t>(edge)];
    const auto add = [this](int rank, Happening::Kind what, int peer, Ticket ticket) {
      transports_[static_cast<std::size_t>(rank)]->inbox_.push_back({{what, peer, ticket, {}}, {}});
    };
    if (happening.sent) add(transfer.from, Happening::Kind::kSent, transfer.to, transfer.sent);
    if (happening.received) {
      if (!transfer.cancelled) add(transfer.to, Happening::Kind::kReceived, transfer.from, transfer.received);
      free_.push_back(edge);
      if (happening.sent) wake(now(), transfer.from);
      return std::exchange(transfer, {}).to;
    }
    return transfer.from;
  }
  return -1;
}

FlowTransport::FlowTransport(FlowNetwork& network, int rank) : network_(network), rank_(rank) {
  network.transports_[static_cast<std::size_t>(rank)] = this;
}

void FlowTransport::send_control(int peer, std::span<const std::byte> bytes) {
  network_.send_control(rank_, peer, {bytes.begin(), bytes.end()});
}

void FlowTransport::send_data(int peer, std::uint32_t channel, std::span<const std::byte> data, Ticket ticket) {
  network_.add_half(rank_, peer, channel, {ticket, data.size(), true});
}

void FlowTransport::receive_data(int peer, std::uint32_t channel, std::span<std::byte> data, Ticket ticket) {
  network_.add_half(peer, rank_, channel, {ticket, data.size(), false});
}

void FlowTransport::wake(double at) {
  wake_at_ = at;
  network_.wake(std::max(at, now()), rank_);
}

bool FlowTransport::poll(Happening& happening) {
  if (wake_at_ >= 0 && now() >= wake_at_) {
    wake_at_ = -1;
    happening = {Happening::Kind::kWake, -1, 0, {}};
    return true;
  }
  if (inbox_.empty()) return false;
  current_ = std::move(inbox_.front().second);
  happening = inbox_.front().first;
  happening.bytes = current_;
  inbox_.pop_front();
  return true;
}

}  // namespace elbowroom::broadcast
