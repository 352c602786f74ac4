// What the engine keeps of each message, child and parent.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine.hpp"

namespace elbowroom::broadcast {

// A child in one tree of one message.
struct Engine::Outgoing {
  Recipient receiver;
  Tree tree;
  std::vector<Recipient> subtree;  // that the child is to serve
  unsigned stripe = 0;
  int stage = 0;
  std::uint32_t channel = 0;
  bool announced = false;
  double announced_at = 0;  // s
  bool ready = false;
  bool bypassed = false;  // its subtree was taken over
  bool closing = false;   // no more segments for it
  bool finished = false;
  std::uint64_t total = 0;  // segments of the stripe
  std::uint64_t next = 0;   // the next one to send
  std::uint64_t flying = 0;
};

// The parent in one tree of one message.
struct Engine::Incoming {
  int peer = -1;  // -1: not announced yet
  std::uint32_t channel = 0;
  Tree tree;
  std::vector<Recipient> subtree;
  bool begun = false;
  bool bypassed = false;
  std::uint64_t total = 0;    // segments of the stripe
  std::uint64_t arrived = 0;  // without a gap
  std::uint64_t posted = 0;
  std::vector<bool> here;  // by segment
  std::vector<Ticket> tickets;
};

// A message on its way through this rank.
struct Engine::Delivery {
  std::uint64_t id = 0;
  Key key;
  std::uint32_t sequence = 0;
  std::uint64_t size = 0;
  std::uint64_t segment = 0;
  unsigned stripes = 1;
  Tree tree;
  std::uint16_t group = 0;  // this rank's
  Operation operation = 0;
  bool is_root = false;
  bool inlined = false;
  bool pooled = false;
  bool refused = false;  // the receive had another size
  bool over = false;
  bool received = false;
  double moved = 0;                   // s, when something happened last
  const std::byte* source = nullptr;  // the data, or where they are put
  std::byte* target = nullptr;
  std::span<std::byte> wanted;  // of a receive whose data are in the pool
  std::vector<std::byte> store;
  Incoming incoming[2];
  std::vector<std::unique_ptr<Outgoing>> outgoing;

  std::uint64_t total(unsigned stripe) const { return (segments(size, segment) + stripes - 1 - stripe) / stripes; }
  std::uint64_t available(unsigned stripe) const { return is_root ? total(stripe) : incoming[stripe].arrived; }
  std::uint64_t offset(unsigned stripe, std::uint64_t index) const { return (index * stripes + stripe) * segment; }
  std::size_t bytes(unsigned stripe, std::uint64_t index) const {
    return static_cast<std::size_t>(std::min(segment, size - offset(stripe, index)));
  }
  Passage passage() const { return {key, tree, stripes, size}; }
  bool has_all() const {
    for (unsigned stripe = 0; stripe < stripes; ++stripe) {
      if (available(stripe) < total(stripe)) return false;
    }
    return true;
  }
};

struct Receive {
  Operation operation = 0;
  std::span<std::byte> data;
  double since = 0;  // s
};

// The receives and data of one key. Receive number i is for the data of sequence number i.
struct Engine::Stream {
  std::uint32_t posted = 0;
  std::map<std::uint32_t, Receive> waiting;
  std::map<std::uint32_t, Delivery*> arrived;

  bool finished(std::uint32_t sequence) const {
    return sequence < posted && waiting.count(sequence) == 0 && arrived.count(sequence) == 0;
  }
};

// A transfer that the transport was asked for.
struct Engine::Request {
  Delivery* delivery = nullptr;
  Outgoing* outgoing = nullptr;  // null: a receive
  unsigned stripe = 0;
  std::uint64_t index = 0;
  std::size_t bytes = 0;
  double begun = 0;  // s, of a send
};

// Whom an answer on a channel is from, and what it is about; `outgoing` is null once all is sent.
struct Engine::Channel {
  int peer = -1;  // -1: free
  Delivery* delivery = nullptr;
  Outgoing* outgoing = nullptr;
};

}  // namespace elbowroom::broadcast
