// What a program gives to the C interface: its transport, settings and network, checked.
#pragma once

#include <cmath>
#include <new>
#include <stdexcept>
#include <string>

#include "c_interface.hpp"
#include "elbowroom/broadcast.h"
#include "engine.hpp"
#include "ways.hpp"

namespace elbowroom::broadcast {

// Sizes of the structs of the first release.
inline constexpr std::size_t kTransport = sizeof(elbow_broadcast_transport);
inline constexpr std::size_t kNetwork = sizeof(elbow_broadcast_network);

struct Unreachable : std::runtime_error {
  Unreachable() : std::runtime_error("transport: failed; see what it says of itself") {}
};

// The caller's transport.
class GivenTransport : public Transport {
 public:
  explicit GivenTransport(const elbow_broadcast_transport& given) : given_(given) {}

  ~GivenTransport() override {
    if (owned_ && given_.close != nullptr) given_.close(given_.state);
  }

  // From now on, it is closed here.
  void own() { owned_ = true; }

  int rank() const override { return given_.rank; }
  int size() const override { return given_.ranks; }
  double now() override { return given_.now(given_.state); }
  std::uint32_t channels() const override { return given_.channels; }

  void send_control(int peer, std::span<const std::byte> bytes) override {
    check(given_.send_control(given_.state, peer, bytes.data(), bytes.size()));
  }
  void send_data(int peer, std::uint32_t channel, std::span<const std::byte> data, Ticket ticket) override {
    check(given_.send_data(given_.state, peer, channel, data.data(), data.size(), ticket));
  }
  void receive_data(int peer, std::uint32_t channel, std::span<std::byte> data, Ticket ticket) override {
    check(given_.receive_data(given_.state, peer, channel, data.data(), data.size(), ticket));
  }
  void cancel(Ticket ticket) override {
    if (given_.cancel != nullptr) check(given_.cancel(given_.state, ticket));
  }

  void wake(double at) override { wake_at_ = at; }

  bool poll(Happening& happening) override {
    if (wake_at_ >= 0 && now() >= wake_at_) {
      wake_at_ = -1;
      happening.kind = Happening::Kind::kWake;
      return true;
    }
    elbow_broadcast_happening given{};
    given.size = sizeof given;
    const int found = given_.poll(given_.state, &given);
    if (found < 0) throw Unreachable();
    if (found == 0) return false;
    happening.kind = static_cast<Happening::Kind>(given.kind);
    happening.peer = given.peer;
    happening.ticket = given.ticket;
    happening.bytes = {static_cast<const std::byte*>(given.bytes),
                       given.kind == ELBOW_BROADCAST_CONTROL ? given.length : 0};
    return true;
  }

 private:
  static void check(int result) {
    if (result != 0) throw Unreachable();
  }

  elbow_broadcast_transport given_;
  bool owned_ = false;
  double wake_at_ = -1;  // s; below 0: not wanted
};

inline elbow_broadcast_transport checked(const elbow_broadcast_transport* given) {
  if (given == nullptr) throw std::invalid_argument("transport: is NULL; use elbow_broadcast_transport_of_mpi");
  const elbow_broadcast_transport transport = c_interface::taken_or_zeros(given, "transport", kTransport);
  if (transport.channels == 0) throw std::bad_alloc();  // that of MPI had no memory
  if (transport.ranks < 1 || transport.rank < 0 || transport.rank >= transport.ranks) {
    throw std::invalid_argument("rank " + std::to_string(transport.rank) + ": is none of " +
                                std::to_string(transport.ranks));
  }
  const bool complete = transport.now != nullptr && transport.poll != nullptr && transport.send_control != nullptr &&
                        transport.send_data != nullptr && transport.receive_data != nullptr;
  if (!complete) {
    throw std::invalid_argument("transport: now, poll, send_control, send_data or receive_data is NULL; give all");
  }
  return transport;
}

inline Settings settings_of(const elbow_broadcast_settings* given, int size) {
  Settings settings;
  if (given->inline_limit != 0) settings.inline_limit = given->inline_limit;
  if (given->window != 0) settings.window = given->window;
  if (given->pool != 0) settings.pool = given->pool;
  if (given->late < ELBOW_BROADCAST_STORE_FORWARD || given->late > ELBOW_BROADCAST_POSTPONE) {
    throw std::invalid_argument(
        "late " + std::to_string(given->late) +
        ": is unknown; use ELBOW_BROADCAST_STORE_FORWARD, ELBOW_BROADCAST_BYPASS or ELBOW_BROADCAST_POSTPONE");
  }
  if (given->watchdog < 0) throw std::invalid_argument("watchdog: is negative; give seconds, or 0 for the default");
  if (settings.inline_limit > kMostSegment) {
    throw std::invalid_argument("inline_limit " + std::to_string(settings.inline_limit) +
                                ": is more than 1 GiB; larger data are sent in segments");
  }
  constexpr Late kLate[] = {Late::kStoreForward, Late::kBypass, Late::kPostpone};
  settings.late = kLate[given->late];
  if (given->groups != nullptr) settings.groups.assign(given->groups, given->groups + size);
  if (given->speeds != nullptr) settings.speeds.assign(given->speeds, given->speeds + size);
  return settings;
}

inline Network network_of(const elbow_broadcast_network* pointer) {
  Network network;
  const elbow_broadcast_network taken = c_interface::taken_or_zeros(pointer, "network", kNetwork);
  const elbow_broadcast_network* const given = &taken;
  const auto take = [](double value, const char* field, double& into) {
    if (!(value >= 0) || std::isinf(value)) {
      throw std::invalid_argument(std::string(field) + ": must be 0 or greater; give 0 for the default");
    }
    if (value > 0) into = value;
  };
  take(given->latency, "latency", network.latency);
  take(given->overhead, "overhead", network.overhead);
  take(given->bandwidth, "bandwidth", network.bandwidth);
  take(given->forwarding, "forwarding", network.forwarding);
  return network;
}

}  // namespace elbowroom::broadcast
