#include "simulated_transport.hpp"

#include <algorithm>
#include <string>

namespace elbowroom::broadcast {
namespace {

namespace s4u = simgrid::s4u;

constexpr double kShortest = 1e-9;  // s; a wait of 0 would not let time pass

// What messages of no content point at.
char nothing = 0;

s4u::Mailbox* control_box(int rank) { return s4u::Mailbox::by_name("control-" + std::to_string(rank)); }

}  // namespace

SimulatedTransport::SimulatedTransport(int rank, int size, double overhead)
    : rank_(rank), size_(size), overhead_(overhead) {
  // Control messages leave at once, whether this actor waits for one or not.
  control_box(rank_)->set_receiver(s4u::Actor::self());
  activities_.emplace_back();
  transfers_.push_back({Happening::Kind::kControl, -1, 0});
  listen();
}

SimulatedTransport::~SimulatedTransport() {
  activities_.front()->cancel();
  delete current_;
}

void SimulatedTransport::work() const {
  if (overhead_ > 0) s4u::this_actor::sleep_for(overhead_);
}

void SimulatedTransport::listen() { activities_.front() = control_box(rank_)->get_async<Control>(&incoming_); }

s4u::Mailbox* SimulatedTransport::data_box(int from, int to, std::uint32_t channel) const {
  return s4u::Mailbox::by_name("data-" + std::to_string(from) + "-" + std::to_string(to) + "-" +
                               std::to_string(channel));
}

void SimulatedTransport::send_control(int peer, std::span<const std::byte> bytes) {
  work();
  auto* control = new Control{rank_, {bytes.begin(), bytes.end()}};
  control_box(peer)->put_init(control, bytes.size())->detach([](void* lost) { delete static_cast<Control*>(lost); });
}

void SimulatedTransport::send_data(int peer, std::uint32_t channel, std::span<const std::byte> data, Ticket ticket) {
  work();
  activities_.push_back(data_box(rank_, peer, channel)->put_async(&nothing, data.size()));
  transfers_.push_back({Happening::Kind::kSent, peer, ticket});
}

void SimulatedTransport::receive_data(int peer, std::uint32_t channel, std::span<std::byte> /*data*/, Ticket ticket) {
  activities_.push_back(data_box(peer, rank_, channel)->get_async<char>(&sink_));
  transfers_.push_back({Happening::Kind::kReceived, peer, ticket});
}

void SimulatedTransport::cancel(Ticket ticket) {
  for (std::size_t i = 1; i < transfers_.size(); ++i) {
    if (transfers_[i].kind != Happening::Kind::kReceived || transfers_[i].ticket != ticket) continue;
    activities_[i]->cancel();
    activities_.erase(activities_.begin() + static_cast<std::ptrdiff_t>(i));
    transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

void SimulatedTransport::wait(double until) {
  if (wake_at_ >= 0 && (until < 0 || wake_at_ < until)) until = wake_at_;
  ready_ = until < 0 ? s4u::Comm::wait_any(activities_)
                     : s4u::Comm::wait_any_for(activities_, std::max(until - now(), kShortest));
}

bool SimulatedTransport::poll(Happening& happening) {
  if (wake_at_ >= 0 && now() >= wake_at_) {
    wake_at_ = -1;
    happening = {Happening::Kind::kWake, -1, 0, {}};
    return true;
  }
  // What else has ended by now ends the next wait at once: looking at all activities here would double their cost.
  if (ready_ < 0) return false;
  const auto index = static_cast<std::size_t>(ready_);
  ready_ = -1;
  if (index == 0) {
    delete current_;
    current_ = incoming_;
    happening = {Happening::Kind::kControl, current_->from, 0, current_->bytes};
    listen();
    work();
    return true;
  }
  happening = {transfers_[index].kind, transfers_[index].peer, transfers_[index].ticket, {}};
  activities_.erase(activities_.begin() + static_cast<std::ptrdiff_t>(index));
  transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(index));
  if (happening.kind == Happening::Kind::kReceived) work();
  return true;
}

}  // namespace elbowroom::broadcast
