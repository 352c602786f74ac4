// A transport over SimGrid's simulated network: each rank is an actor of its own. Data have sizes only.
#pragma once

#include <map>
#include <simgrid/s4u.hpp>
#include <vector>

#include "transport.hpp"

namespace elbowroom::broadcast {

class SimulatedTransport : public Transport {
 public:
  // `overhead`: s that each message occupies its sender and its receiver.
  SimulatedTransport(int rank, int size, double overhead);
  ~SimulatedTransport() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  double now() override { return simgrid::s4u::Engine::get_clock(); }
  std::uint32_t channels() const override { return 1 << 20; }
  void send_control(int peer, std::span<const std::byte> bytes) override;
  void send_data(int peer, std::uint32_t channel, std::span<const std::byte> data, Ticket ticket) override;
  void receive_data(int peer, std::uint32_t channel, std::span<std::byte> data, Ticket ticket) override;
  void cancel(Ticket ticket) override;
  void wake(double at) override { wake_at_ = at; }
  bool poll(Happening& happening) override;

  // Lets simulated time pass until something happens here, or until that time (s; below 0: never).
  void wait(double until = -1);

 private:
  struct Control {
    int from;
    std::vector<std::byte> bytes;
  };
  struct Transfer {
    Happening::Kind kind;
    int peer;
    Ticket ticket;
  };

  simgrid::s4u::Mailbox* data_box(int from, int to, std::uint32_t channel) const;
  void listen();
  void work() const;

  int rank_;
  int size_;
  double overhead_;
  // The first activity is the receive of the next control message; the others are transfers of data, in step.
  std::vector<simgrid::s4u::CommPtr> activities_;
  std::vector<Transfer> transfers_;
  Control* incoming_ = nullptr;
  Control* current_ = nullptr;
  std::ptrdiff_t ready_ = -1;
  char* sink_ = nullptr;
  double wake_at_ = -1;  // s; below 0: not wanted
};

}  // namespace elbowroom::broadcast
