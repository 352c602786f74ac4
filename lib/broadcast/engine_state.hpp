// What the engine keeps of each message, child and parent.
#pragma once

#include <map>
#include <memory>
#include <optional>
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
  std::uint64_t number = 0;  // of its announcement
  std::uint32_t channel = kCommonChannel;
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
  std::uint64_t number = 0;
  std::uint32_t channel = kCommonChannel;
  // The first segment, which follows its announcement: announced; posted into memory of its own; here, in that memory.
  enum class Early : std::uint8_t { kNone, kAnnounced, kPosted, kHere } early = Early::kNone;
  Ticket early_ticket = 0;
  std::vector<std::byte> held;  // that memory
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
  std::uint64_t serial = 0;
  std::uint64_t previous = 0;
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
  std::size_t inlined_bytes = 0;  // that its root's share of the pool holds
  std::int32_t priority = 0;      // the highest one of its children
  std::optional<Place> ready;     // where it is in ready_
  double held_until = -1;         // s; below 0: not in holds_
  double moved = 0;               // s, when something happened last, or was said to have stalled
  bool stall_told = false;
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
  double since = 0;         // s
  bool stall_told = false;  // that nobody announced data
};

// The receives and data of one key, while there are any: the first receive gets the data of the lowest serial.
struct Engine::Stream {
  std::deque<Receive> waiting;
  std::map<std::uint64_t, Delivery*> arrived;
};

// A transfer that the transport was asked for.
struct Engine::Request {
  Delivery* delivery = nullptr;  // null: data that nobody wants
  Outgoing* outgoing = nullptr;  // null: a receive
  unsigned stripe = 0;
  std::uint64_t index = 0;
  std::size_t bytes = 0;
  double begun = 0;         // s, of a send
  std::uint64_t round = 0;  // of the peer, while its bytes count; 0: they do not
  bool open = false;
};

// To whom something was announced; `outgoing` is null once all is sent.
struct Engine::Announced {
  int peer = -1;
  Delivery* delivery = nullptr;
  Outgoing* outgoing = nullptr;
  std::size_t early = 0;  // bytes that followed
};

// Another rank.
struct Engine::Peer {
  // As a child:
  std::size_t in_flight = 0;  // bytes
  std::size_t counted = 0;    // of these, in the window that all share
  std::uint64_t round = 1;    // counts how often its bytes left that window
  bool apart = false;         // it takes nothing: what is sent to it does not count
  double since = 0;           // s, when what counts was sent, or moved last
  std::set<Place> blocked;    // messages that wait for its own window
  std::size_t early = 0;      // bytes that followed announcements without an answer
  // As a recipient of this rank's data:
  std::uint64_t serial = 0;                          // of the last message
  std::uint64_t inlined = 0;                         // bytes
  std::uint64_t taken = 0;                           // of these, that it says were received
  std::deque<std::pair<std::uint64_t, Key>> recent;  // serials that it has not said to have arrived
  // As a root:
  std::uint64_t arrived = 0;       // all serials up to this
  std::set<std::uint64_t> beyond;  // and these
  std::uint64_t received = 0;      // bytes of its inlined data
  std::uint64_t told_arrived = 0;
  std::uint64_t told_received = 0;
  // As a parent:
  std::uint32_t channels = kCommonChannel + 1;  // that were in use at once
  std::vector<std::uint32_t> free_channels;
};

}  // namespace elbowroom::broadcast
