#include "test_loopback.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace elbowroom::broadcast {

struct LoopbackNetwork::Pending {
  int rank = -1;  // to whom it happens
  Happening::Kind kind = Happening::Kind::kControl;
  int peer = -1;
  Ticket ticket = 0;
  std::vector<std::byte> bytes;     // of a control message, or of data that were copied
  const std::byte* from = nullptr;  // data that are read when it happens
  std::span<std::byte> into;
};

// Sends and receives of one channel that wait for each other.
struct LoopbackNetwork::Transfer {
  struct Send {
    std::span<const std::byte> data;
    std::vector<std::byte> copy;  // of a send that is over already
    bool copied = false;
    Ticket ticket = 0;
  };
  struct Receive {
    std::span<std::byte> data;
    Ticket ticket = 0;
  };
  std::deque<Send> sends;
  std::deque<Receive> receives;
};

class LoopbackNetwork::Endpoint : public Transport {
 public:
  Endpoint(LoopbackNetwork& network, int rank) : network_(network), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(network_.endpoints_.size()); }
  double now() override { return network_.now_; }
  std::uint32_t channels() const override { return network_.channels_; }

  void send_control(int peer, std::span<const std::byte> bytes) override {
    Pending pending{peer, Happening::Kind::kControl, rank_, 0, {bytes.begin(), bytes.end()}, nullptr, {}};
    if (network_.damage_ > 0 && std::uniform_real_distribution<>()(network_.random_) < network_.damage_) {
      pending.bytes[network_.random_() % pending.bytes.size()] ^= static_cast<std::byte>(network_.random_() % 255 + 1);
    }
    double& last = network_.last_control_[{rank_, peer}];
    last = std::max(last, network_.now_ + network_.delay());
    network_.schedule(last, std::move(pending));
  }

  void send_data(int peer, std::uint32_t channel, std::span<const std::byte> data, Ticket ticket) override {
    Transfer::Send send{
        data, {}, network_.random_() % 2 == 0 || network_.lost_[static_cast<std::size_t>(peer)], ticket};
    if (send.copied) {  // as MPI does with small messages
      send.copy.assign(data.begin(), data.end());
      network_.schedule(network_.now_ + network_.delay(),
                        {rank_, Happening::Kind::kSent, peer, ticket, {}, nullptr, {}});
    }
    network_.transfers_[{rank_, peer, channel}].sends.push_back(std::move(send));
    network_.try_transfer(rank_, peer, channel);
  }

  void receive_data(int peer, std::uint32_t channel, std::span<std::byte> data, Ticket ticket) override {
    network_.transfers_[{peer, rank_, channel}].receives.push_back({data, ticket});
    network_.try_transfer(peer, rank_, channel);
  }

  void cancel(Ticket ticket) override {
    for (auto& [at, pending] : network_.pending_) {
      if (pending.rank == rank_ && pending.kind == Happening::Kind::kReceived && pending.ticket == ticket) {
        pending.rank = -1;
      }
    }
    for (auto& [key, transfer] : network_.transfers_) {
      if (std::get<1>(key) == rank_) {
        std::erase_if(transfer.receives,
                      [ticket](const Transfer::Receive& receive) { return receive.ticket == ticket; });
      }
    }
  }

  void wake(double at) override { network_.schedule(at, {rank_, Happening::Kind::kWake, -1, 0, {}, nullptr, {}}); }

  bool poll(Happening& happening) override {
    if (inbox_.empty()) return false;
    current_ = std::move(inbox_.front());
    inbox_.pop_front();
    happening = {current_.kind, current_.peer, current_.ticket, current_.bytes};
    return true;
  }

  void deliver(Pending&& pending) { inbox_.push_back(std::move(pending)); }

 private:
  LoopbackNetwork& network_;
  int rank_;
  std::deque<Pending> inbox_;
  Pending current_;
};

LoopbackNetwork::LoopbackNetwork(int size, std::uint64_t seed, bool jitter, std::uint32_t channels)
    : random_(seed), jitter_(jitter), channels_(channels), lost_(static_cast<std::size_t>(size)) {
  for (int rank = 0; rank < size; ++rank) endpoints_.push_back(std::make_unique<Endpoint>(*this, rank));
}

LoopbackNetwork::~LoopbackNetwork() = default;

Transport& LoopbackNetwork::endpoint(int rank) { return *endpoints_[static_cast<std::size_t>(rank)]; }

// Mostly short, sometimes a hundred times as long.
double LoopbackNetwork::delay() {
  if (!jitter_) return 1;
  const double share = std::uniform_real_distribution<>()(random_);
  return random_() % 16 == 0 ? 100 * share : share;
}

void LoopbackNetwork::schedule(double at, Pending pending) {
  pending_.emplace(std::pair{at, count_++}, std::move(pending));
}

void LoopbackNetwork::try_transfer(int from, int to, std::uint32_t channel) {
  const auto found = transfers_.find({from, to, channel});
  Transfer& transfer = found->second;
  while (!transfer.sends.empty() && !transfer.receives.empty()) {
    Transfer::Send& send = transfer.sends.front();
    const Transfer::Receive receive = transfer.receives.front();
    const double at = now_ + delay();
    if (!lost_[static_cast<std::size_t>(from)] && !lost_[static_cast<std::size_t>(to)]) {
      if (!send.copied) {
        const double sent_at = at + delay();
        schedule(sent_at, {from, Happening::Kind::kSent, to, send.ticket, {}, nullptr, {}});
      }
      schedule(at, {to, Happening::Kind::kReceived, from, receive.ticket, std::move(send.copy),
                    send.copied ? nullptr : send.data.data(),
                    receive.data.first(std::min(receive.data.size(), send.data.size()))});
    }
    transfer.sends.pop_front();
    transfer.receives.pop_front();
  }
  if (transfer.sends.empty() && transfer.receives.empty()) transfers_.erase(found);
}

int LoopbackNetwork::step() {
  while (!pending_.empty()) {
    auto node = pending_.extract(pending_.begin());
    now_ = node.key().first;
    Pending& pending = node.mapped();
    const int rank = pending.rank;
    if (rank < 0 || lost_[static_cast<std::size_t>(rank)]) continue;
    if (pending.kind == Happening::Kind::kReceived && !pending.into.empty()) {
      std::memcpy(pending.into.data(), pending.from != nullptr ? pending.from : pending.bytes.data(),
                  pending.into.size());
    }
    endpoints_[static_cast<std::size_t>(rank)]->deliver(std::move(pending));
    return rank;
  }
  return -1;
}

// What the rank sent and has not arrived is gone; sends to it end, and the others learn of it.
void LoopbackNetwork::lose(int rank) {
  lost_[static_cast<std::size_t>(rank)] = true;
  for (auto& [at, pending] : pending_) {
    const bool ends_a_send = pending.kind == Happening::Kind::kSent;
    if (pending.rank == rank || (pending.peer == rank && !ends_a_send)) pending.rank = -1;
  }
  for (auto& [key, transfer] : transfers_) {
    if (std::get<1>(key) != rank) continue;
    for (const Transfer::Send& send : transfer.sends) {
      if (!send.copied) {
        schedule(now_ + delay(), {std::get<0>(key), Happening::Kind::kSent, rank, send.ticket, {}, nullptr, {}});
      }
    }
  }
  std::erase_if(transfers_, [rank](const auto& item) {
    return std::get<1>(item.first) == rank || (std::get<0>(item.first) == rank && item.second.receives.empty());
  });
  for (int other = 0; other < static_cast<int>(endpoints_.size()); ++other) {
    if (other != rank) schedule(now_ + delay(), {other, Happening::Kind::kLost, rank, 0, {}, nullptr, {}});
  }
}

std::size_t LoopbackNetwork::pending() const {
  std::size_t count = 0;
  for (const auto& [key, transfer] : transfers_) count += transfer.sends.size() + transfer.receives.size();
  return count;
}

}  // namespace elbowroom::broadcast
