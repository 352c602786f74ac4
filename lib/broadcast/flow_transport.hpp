// A transport over simulated flows, for hundreds of ranks in one thread: whoever drives it calls the rank to which something
// happened. Data have sizes only.
#pragma once

#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flows.hpp"
#include "transport.hpp"

namespace elbowroom::broadcast {

class FlowTransport;

// What the ranks have in common: messages on their way, and data that wait for their other half.
class FlowNetwork {
 public:
  FlowNetwork(const Network& network, int ranks);

  double now() const { return flows_.now(); }
  int ranks() const { return static_cast<int>(transports_.size()); }
  // The rank to which something happens next; below 0: nothing is left.
  int next();
  void wake(double at, int rank) { flows_.wake(at, {kWake, rank, 0}); }

 private:
  friend class FlowTransport;
  enum Kind : int { kWake, kControl, kData };
  using Bytes = std::vector<std::byte>;
  // Sends or receives of a pair on a channel, of which the other half is missing.
  struct Half {
    Ticket ticket = 0;
    std::size_t bytes = 0;
    bool sends = false;
  };
  struct Transfer {
    int from = 0;
    int to = 0;
    Ticket sent = 0;
    Ticket received = 0;
    bool cancelled = false;
  };

  void send_control(int from, int to, Bytes bytes);
  void add_half(int from, int to, std::uint32_t channel, const Half& half);
  void cancel(int rank, Ticket ticket);
  std::uint64_t pair(int from, int to) const {
    return static_cast<std::uint64_t>(from) * transports_.size() + static_cast<std::uint64_t>(to);
  }

  Flows flows_;
  std::vector<FlowTransport*> transports_;
  std::unordered_map<std::uint64_t, std::deque<Bytes>> controls_;  // by pair, in the order in which they left
  std::unordered_map<std::uint64_t, std::deque<Half>> halves_;     // by pair and channel
  std::vector<Transfer> transfers_;
  std::vector<int> free_;
};

class FlowTransport : public Transport {
 public:
  static constexpr unsigned kChannelBits = 20;

  FlowTransport(FlowNetwork& network, int rank);
  ~FlowTransport() override { network_.transports_[static_cast<std::size_t>(rank_)] = nullptr; }

  int rank() const override { return rank_; }
  int size() const override { return network_.ranks(); }
  double now() override { return network_.now(); }
  std::uint32_t channels() const override { return 1U << kChannelBits; }
  void send_control(int peer, std::span<const std::byte> bytes) override;
  void send_data(int peer, std::uint32_t channel, std::span<const std::byte> data, Ticket ticket) override;
  void receive_data(int peer, std::uint32_t channel, std::span<std::byte> data, Ticket ticket) override;
  void cancel(Ticket ticket) override { network_.cancel(rank_, ticket); }
  void wake(double at) override;
  bool poll(Happening& happening) override;

 private:
  friend class FlowNetwork;

  FlowNetwork& network_;
  int rank_;
  std::deque<std::pair<Happening, FlowNetwork::Bytes>> inbox_;
  FlowNetwork::Bytes current_;
  double wake_at_ = -1;  // s; below 0: not wanted
};

}  // namespace elbowroom::broadcast
