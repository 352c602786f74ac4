// Ranks of the C interface over a loopback network, for tests.
#pragma once

#include <doctest/doctest.h>

#include <mutex>
#include <string>
#include <vector>

#include "elbowroom/broadcast.h"
#include "test_loopback.hpp"

namespace elbowroom::broadcast {

template <typename Struct>
Struct sized() {
  Struct result{};
  result.size = sizeof result;
  return result;
}

// elbow_broadcast_transport over the endpoints of a loopback network, for any number of threads. A poll lets the next thing happen,
// to whichever rank.
class Wire {
 public:
  explicit Wire(int size, std::uint64_t seed = 1) : network_(size, seed), ends_(static_cast<std::size_t>(size)) {}

  double skip = 0;  // s that pass with each look at the clock

  elbow_broadcast_transport transport(int rank) {
    End& end = ends_[static_cast<std::size_t>(rank)];
    end.wire = this;
    end.rank = rank;
    auto result = sized<elbow_broadcast_transport>();
    result.state = &end;
    result.rank = rank;
    result.ranks = static_cast<int>(ends_.size());
    result.channels = 1000;
    result.now = [](void* state) {
      End& self = *static_cast<End*>(state);
      self.passed += self.wire->skip;
      return self.passed;
    };
    result.send_control = [](void* state, int peer, const void* bytes, size_t size) {
      return with(state, [=](Transport& to) { to.send_control(peer, {static_cast<const std::byte*>(bytes), size}); });
    };
    result.send_data = [](void* state, int peer, uint32_t channel, const void* data, size_t size, uint64_t ticket) {
      return with(state, [=](Transport& to) {
        to.send_data(peer, channel, {static_cast<const std::byte*>(data), size}, ticket);
      });
    };
    result.receive_data = [](void* state, int peer, uint32_t channel, void* data, size_t size, uint64_t ticket) {
      return with(state, [=](Transport& to) {
        to.receive_data(peer, channel, {static_cast<std::byte*>(data), size}, ticket);
      });
    };
    result.cancel = [](void* state, uint64_t ticket) { return with(state, [=](Transport& to) { to.cancel(ticket); }); };
    result.poll = [](void* state, elbow_broadcast_happening* given) {
      int found = 0;
      with(state, [&](Transport& from) {
        static_cast<End*>(state)->wire->network_.step();
        Happening now;
        found = from.poll(now) ? 1 : 0;
        *given = {given->size, static_cast<int>(now.kind), now.peer, now.ticket, now.bytes.data(), now.bytes.size()};
      });
      return found;
    };
    return result;
  }

 private:
  struct End {
    Wire* wire = nullptr;
    int rank = 0;
    double passed = 0;
  };

  template <typename Call>
  static int with(void* state, const Call& call) {
    const End& end = *static_cast<End*>(state);
    const std::lock_guard lock(end.wire->mutex_);
    call(end.wire->network_.endpoint(end.rank));
    return 0;
  }

  std::mutex mutex_;
  LoopbackNetwork network_;
  std::vector<End> ends_;
};

struct Rank {
  Rank(Wire& wire, int rank, const elbow_broadcast_settings* settings = nullptr) {
    const elbow_broadcast_transport transport = wire.transport(rank);
    broadcast = elbow_broadcast_new(&transport, settings);
    REQUIRE(broadcast != nullptr);
  }
  ~Rank() { elbow_broadcast_free(broadcast); }
  elbow_broadcast* broadcast;
};

inline std::string error() { return elbow_broadcast_error(); }

}  // namespace elbowroom::broadcast
