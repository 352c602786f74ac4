// The engine's side towards its parents: announcements, receives, and segments that arrive.
#include <algorithm>
#include <utility>

#include "engine.hpp"
#include "engine_state.hpp"

namespace elbowroom::broadcast {

void Engine::on_message(int peer, std::span<const std::byte> bytes) {
  try {
    Message message = decode(bytes, transport_.rank(), transport_.size());
    if (auto* announcement = std::get_if<Announcement>(&message)) {
      if (observer_ != nullptr) observer_->was_announced(peer, *announcement);
      if (announcement->inlined) {
        on_inlined(*announcement);
      } else {
        on_announcement(peer, *announcement);
      }
    } else if (const Answer& answer = std::get<Answer>(message); answer.reply == Reply::kTaken) {
      on_taken(peer, answer);
    } else if (answer.reply == Reply::kSegment) {
      on_segment(peer, answer);
    } else {
      on_answer(peer, answer);
    }
  } catch (const BadMessage& error) {
    fail(0, peer, "a message of rank " + std::to_string(peer) + " cannot be read: " + error.what());
  }
}

namespace {

constexpr std::uint64_t kTellAfter = 256;  // messages of a root

std::string wrong_size(std::size_t wanted, std::uint64_t sent) {
  return "receives " + std::to_string(wanted) + " bytes, but " + std::to_string(sent) + " were sent";
}

}  // namespace

// Whether these data were not announced to this rank before.
bool Engine::arrive(const Announcement& announcement) {
  Peer& root = peer_of(announcement.key.root);
  const std::uint64_t serial = announcement.receiver.serial;
  if (serial <= root.arrived || root.beyond.count(serial) != 0) return false;
  if (serial != root.arrived + 1) {
    root.beyond.insert(serial);
    return true;
  }
  ++root.arrived;
  while (!root.beyond.empty() && *root.beyond.begin() == root.arrived + 1) {
    root.beyond.erase(root.beyond.begin());
    ++root.arrived;
  }
  return true;
}

// The program has so many bytes of a root's inlined data. From time to time the root learns what it may forget, and how much
// it may send before it is received.
void Engine::tell_taken(int root, std::size_t bytes) {
  Peer& peer = peer_of(root);
  peer.received += bytes;
  const bool many = peer.arrived - peer.told_arrived >= kTellAfter;
  const bool much = peer.received - peer.told_received > share() / 4;
  if ((!many && !much) || is_lost(root)) return;
  peer.told_arrived = peer.arrived;
  peer.told_received = peer.received;
  write(root, Answer{Reply::kTaken, peer.arrived, peer.received});
}

// Whether the data before these with the same key arrived.
bool Engine::follows(const Key& key, std::uint64_t previous) {
  const Peer& root = peer_of(key.root);
  return previous <= root.arrived || root.beyond.count(previous) != 0;
}

void Engine::on_inlined(const Announcement& announcement) {
  const Key& key = announcement.key;
  if (!announcement.subtree.empty()) {
    counters_.forwarded += announcement.size * announcement.subtree.size();
    std::vector<Announcement> below = inlined(announcement, announcement.subtree, announcement.receiver.group);
    write_inlined(below);
  }
  if (!arrive(announcement)) return;
  Stream& stream = stream_of(key);
  const std::size_t held = static_cast<std::size_t>(announcement.size) + kInlinedCost;
  if (!stream.waiting.empty() && stream.arrived.empty() && follows(key, announcement.receiver.previous)) {
    const Receive receive = stream.waiting.front();
    stream.waiting.pop_front();
    if (receive.data.size() != announcement.size) {
      fail(receive.operation, key.root, wrong_size(receive.data.size(), announcement.size));
    } else {
      std::copy(announcement.payload.begin(), announcement.payload.end(), receive.data.begin());
      const Passage passage{key, announcement.tree, 1, announcement.size};
      note(Event::Kind::kReceived, receive.operation, passage);
      note(Event::Kind::kReleased, receive.operation, passage);
    }
    tell_taken(key.root, held);
  } else {
    Delivery& delivery = add_delivery(announcement);
    delivery.inlined = true;
    delivery.inlined_bytes = held;
    delivery.store.assign(announcement.payload.begin(), announcement.payload.end());
    arrived_[{key.root, delivery.serial}] = &delivery;
    stream.arrived[delivery.serial] = &delivery;
  }
  match(stream);
  erase_if_empty(key);
}

void Engine::on_announcement(int peer, Announcement& announcement) {
  const Key key = announcement.key;
  const bool is_new = arrive(announcement);
  const auto found = arrived_.find({key.root, announcement.receiver.serial});
  const std::size_t first = static_cast<std::size_t>(
      std::min(announcement.segment, announcement.size - announcement.segment * announcement.stripe));
  if (!is_new && found == arrived_.end()) {
    // A new parent after the loss of the former one: all is here, and the children are served.
    if (announcement.early) drain(peer, first);
    write(peer, Answer{Reply::kDone, announcement.number});
    return;
  }
  Delivery& delivery = is_new ? add_delivery(announcement) : *found->second;
  const unsigned stripe = announcement.stripe;
  Stream& stream = stream_of(key);
  if (is_new) {
    arrived_[{key.root, delivery.serial}] = &delivery;
    stream.arrived[delivery.serial] = &delivery;
    tell_taken(key.root, 0);
  } else if (delivery.size != announcement.size || delivery.segment != announcement.segment ||
             delivery.stripes != announcement.stripes) {
    if (announcement.early) drain(peer, first);
    write(peer, Answer{Reply::kRefuse, announcement.number});
    erase_if_empty(key);
    throw BadMessage("size: contradicts an earlier announcement of the same data");
  }
  attach(delivery, peer, announcement);
  Incoming& incoming = delivery.incoming[stripe];
  if (delivery.refused && !delivery.pooled) {
    if (std::exchange(incoming.early, Incoming::Early::kNone) == Incoming::Early::kAnnounced) drain(peer, first);
    write(peer, Answer{Reply::kRefuse, announcement.number});
    complete(delivery);
  } else if (incoming.begun) {
    resume(delivery, stripe);
  } else if (delivery.target != nullptr) {
    begin(delivery, stripe);
  } else {
    match(stream);
    if (delivery.target == nullptr && !delivery.refused) hold(delivery);
  }
  if (incoming.early == Incoming::Early::kAnnounced) post_early(delivery, stripe);
  erase_if_empty(key);
}

// A segment on the common channel follows.
void Engine::on_segment(int peer, const Answer& answer) {
  const auto found = on_common_.find({peer, answer.number});
  if (found == on_common_.end()) throw BadMessage("number: nothing is received by " + std::to_string(answer.number));
  const auto [delivery, stripe] = found->second;
  Incoming& incoming = delivery->incoming[stripe];
  if (answer.from != incoming.posted || answer.from >= incoming.total)
    throw BadMessage("from: is not the next segment");
  post(*delivery, stripe, incoming.posted++);
}

Engine::Delivery& Engine::add_delivery(const Announcement& announcement) {
  auto owned = std::make_unique<Delivery>();
  Delivery& delivery = *owned;
  delivery.id = ++last_delivery_;
  delivery.key = announcement.key;
  delivery.serial = announcement.receiver.serial;
  delivery.previous = announcement.receiver.previous;
  delivery.size = announcement.size;
  delivery.segment = announcement.segment;
  delivery.stripes = announcement.stripes;
  delivery.tree = announcement.tree;
  delivery.group = group_of(transport_.rank());
  delivery.moved = transport_.now();
  deliveries_.emplace(delivery.id, std::move(owned));
  return delivery;
}

// Notes the parent of a stripe; a former one is lost, and what it sends is given up.
void Engine::attach(Delivery& delivery, int peer, Announcement& announcement) {
  using Early = Incoming::Early;
  Incoming& incoming = delivery.incoming[announcement.stripe];
  for (const Ticket ticket : incoming.tickets) {
    transport_.cancel(ticket);
    take_request(ticket);
    early_.erase(ticket);
  }
  incoming.tickets.clear();
  if (incoming.peer >= 0) leave_channel(delivery, announcement.stripe);
  if (incoming.early != Early::kHere) incoming.early = Early::kNone;
  incoming.posted = incoming.arrived;
  const bool is_new = incoming.peer < 0;
  incoming.peer = peer;
  incoming.number = announcement.number;
  incoming.total = delivery.total(announcement.stripe);
  incoming.here.resize(static_cast<std::size_t>(incoming.total));
  std::fill(incoming.here.begin() + static_cast<std::ptrdiff_t>(incoming.arrived), incoming.here.end(), false);
  if (announcement.early && (incoming.early == Early::kHere || incoming.arrived > 0)) {
    drain(peer, delivery.bytes(announcement.stripe, 0));
  } else if (announcement.early) {
    incoming.early = Early::kAnnounced;
  }
  if (is_new || incoming.bypassed) {
    incoming.tree = announcement.tree;
    incoming.subtree = std::move(announcement.subtree);
  }
}

// Gives data to the receives that wait for them, in the order of the key.
void Engine::match(Stream& stream) {
  while (!stream.waiting.empty() && !stream.arrived.empty()) {
    Delivery& delivery = *stream.arrived.begin()->second;
    if (!follows(delivery.key, delivery.previous)) return;
    const Receive receive = stream.waiting.front();
    stream.waiting.pop_front();
    stream.arrived.erase(stream.arrived.begin());
    if (receive.data.size() != delivery.size) {
      refuse(delivery, receive.operation, receive.data.size());
    } else {
      accept(delivery, receive.operation, receive.data);
    }
    if (delivery.inlined) tell_taken(delivery.key.root, std::exchange(delivery.inlined_bytes, 0));
  }
}

void Engine::accept(Delivery& delivery, Operation operation, std::span<std::byte> data) {
  delivery.operation = operation;
  delivery.moved = transport_.now();
  if (delivery.inlined || delivery.pooled) {
    delivery.wanted = data;
    check_received(delivery);
    return;
  }
  delivery.target = data.data();
  delivery.source = delivery.target;
  for (unsigned stripe = 0; stripe < delivery.stripes; ++stripe) {
    if (delivery.incoming[stripe].peer >= 0) begin(delivery, stripe);
  }
}

// Nobody wants the data yet: those below this rank need not wait for it.
void Engine::hold(Delivery& delivery) {
  const auto waits = [](const Incoming& incoming) { return !incoming.subtree.empty(); };
  if (settings_.late == Late::kPostpone || std::none_of(delivery.incoming, delivery.incoming + 2, waits)) return;
  if (settings_.late == Late::kStoreForward && delivery.size <= settings_.pool - pool_used_) {
    delivery.store.resize(static_cast<std::size_t>(delivery.size));
    delivery.pooled = true;
    pool_used_ += delivery.store.size();
    ++counters_.stored;
    delivery.target = delivery.store.data();
    delivery.source = delivery.target;
    for (unsigned stripe = 0; stripe < delivery.stripes; ++stripe) {
      if (delivery.incoming[stripe].peer >= 0) begin(delivery, stripe);
    }
    return;
  }
  for (Incoming& incoming : delivery.incoming) {
    if (!waits(incoming)) continue;
    incoming.subtree.clear();
    incoming.bypassed = true;
    write(incoming.peer, Answer{Reply::kBypass, incoming.number});
  }
}

// The receive is over; the parents serve the children.
void Engine::refuse(Delivery& delivery, Operation operation, std::size_t size) {
  fail(operation, delivery.key.root, wrong_size(size, delivery.size));
  if (delivery.inlined) {
    delivery.received = true;
    retire(delivery);
    return;
  }
  delivery.refused = true;
  if (delivery.pooled) {  // they are forwarded from the pool, and nobody here wants them
    check_received(delivery);
    return;
  }
  for (unsigned stripe = 0; stripe < delivery.stripes; ++stripe) {
    Incoming& incoming = delivery.incoming[stripe];
    if (incoming.peer < 0) continue;
    if (incoming.early == Incoming::Early::kPosted) {
      requests_[incoming.early_ticket].delivery = nullptr;
      incoming.early = Incoming::Early::kNone;
    } else if (std::exchange(incoming.early, Incoming::Early::kNone) == Incoming::Early::kAnnounced) {
      drain(incoming.peer, delivery.bytes(stripe, 0));
    }
    incoming.tickets.clear();
    write(incoming.peer, Answer{Reply::kRefuse, incoming.number});
  }
  complete(delivery);
}

// A refused message is over when all its stripes were announced, so that none is waited for.
void Engine::complete(Delivery& delivery) {
  for (unsigned stripe = 0; stripe < delivery.stripes; ++stripe) {
    if (delivery.incoming[stripe].peer < 0) return;
  }
  delivery.received = true;
  retire(delivery);
}

void Engine::begin(Delivery& delivery, unsigned stripe) {
  Incoming& incoming = delivery.incoming[stripe];
  incoming.begun = true;
  add_branches(delivery, stripe, incoming.tree, incoming.subtree, delivery.group, 0);
  if (incoming.early == Incoming::Early::kHere) {
    std::copy(incoming.held.begin(), incoming.held.end(), delivery.target + delivery.offset(stripe, 0));
    incoming.held = {};
    incoming.early = Incoming::Early::kNone;
    note_here(delivery, stripe, 0);
  }
  announce(delivery);
  ask(delivery, stripe);
}

// Goes on with another parent than before.
void Engine::resume(Delivery& delivery, unsigned stripe) {
  Incoming& incoming = delivery.incoming[stripe];
  if (incoming.bypassed) {
    incoming.bypassed = false;
    add_branches(delivery, stripe, incoming.tree, incoming.subtree, delivery.group, 0);
    announce(delivery);
  }
  ask(delivery, stripe);
}

// Asks the parent for what is missing.
void Engine::ask(Delivery& delivery, unsigned stripe) {
  Incoming& incoming = delivery.incoming[stripe];
  if (incoming.arrived == incoming.total) {
    write(incoming.peer, Answer{Reply::kDone, incoming.number});
    check_received(delivery);
    return;
  }
  if (incoming.early == Incoming::Early::kAnnounced) post_early(delivery, stripe);
  incoming.posted = incoming.early == Incoming::Early::kPosted ? 1 : incoming.arrived;
  if (incoming.posted == incoming.total && incoming.subtree.empty()) return;  // the parent need not know
  if (incoming.posted < incoming.total) {
    Peer& parent = peer_of(incoming.peer);
    if (!parent.free_channels.empty()) {
      incoming.channel = parent.free_channels.back();
      parent.free_channels.pop_back();
    } else if (parent.channels < transport_.channels()) {
      incoming.channel = parent.channels++;
    } else {
      on_common_[{incoming.peer, incoming.number}] = {&delivery, stripe};
    }
  }
  write(incoming.peer, Answer{Reply::kReady, incoming.number, incoming.posted, incoming.channel});
  post_receives(delivery, stripe);
}

void Engine::leave_channel(Delivery& delivery, unsigned stripe) {
  Incoming& incoming = delivery.incoming[stripe];
  if (incoming.channel == kCommonChannel) {
    on_common_.erase({incoming.peer, incoming.number});
  } else {
    peer_of(incoming.peer).free_channels.push_back(std::exchange(incoming.channel, kCommonChannel));
  }
}

// Data that nobody wants.
void Engine::drain(int peer, std::size_t bytes) {
  const Ticket ticket = add_request({});
  std::vector<std::byte>& memory = early_[ticket];
  memory.resize(bytes);
  transport_.receive_data(peer, kCommonChannel, memory, ticket);
}

// Receives the first segment, which follows its announcement: into memory of its own where no receive is posted yet.
void Engine::post_early(Delivery& delivery, unsigned stripe) {
  Incoming& incoming = delivery.incoming[stripe];
  const std::size_t bytes = delivery.bytes(stripe, 0);
  const Ticket ticket = add_request({&delivery, nullptr, stripe, 0, bytes});
  std::span<std::byte> into;
  if (delivery.target != nullptr) {
    into = {delivery.target + delivery.offset(stripe, 0), bytes};
  } else {
    early_[ticket].resize(bytes);
    into = early_[ticket];
  }
  incoming.early = Incoming::Early::kPosted;
  incoming.early_ticket = ticket;
  incoming.tickets.push_back(ticket);
  transport_.receive_data(incoming.peer, kCommonChannel, into, ticket);
}

void Engine::post_receives(Delivery& delivery, unsigned stripe) {
  Incoming& incoming = delivery.incoming[stripe];
  if (incoming.channel == kCommonChannel) return;  // each segment is announced there
  while (incoming.posted < incoming.total && incoming.posted < incoming.arrived + settings_.posted) {
    post(delivery, stripe, incoming.posted++);
  }
}

void Engine::post(Delivery& delivery, unsigned stripe, std::uint64_t index) {
  Incoming& incoming = delivery.incoming[stripe];
  const std::size_t bytes = delivery.bytes(stripe, index);
  const Ticket ticket = add_request({&delivery, nullptr, stripe, index, bytes});
  incoming.tickets.push_back(ticket);
  transport_.receive_data(incoming.peer, incoming.channel, {delivery.target + delivery.offset(stripe, index), bytes},
                          ticket);
}

void Engine::note_here(Delivery& delivery, unsigned stripe, std::uint64_t index) {
  Incoming& incoming = delivery.incoming[stripe];
  incoming.here[static_cast<std::size_t>(index)] = true;
  while (incoming.arrived < incoming.total && incoming.here[static_cast<std::size_t>(incoming.arrived)]) {
    ++incoming.arrived;
  }
}

void Engine::on_received(Ticket ticket) {
  const Request request = take_request(ticket);
  const auto early = early_.find(ticket);
  if (request.delivery == nullptr) {
    early_.erase(early);
    return;
  }
  Delivery& delivery = *request.delivery;
  Incoming& incoming = delivery.incoming[request.stripe];
  std::erase(incoming.tickets, ticket);
  delivery.moved = transport_.now();
  if (incoming.early == Incoming::Early::kPosted && incoming.early_ticket == ticket) {
    incoming.early = Incoming::Early::kNone;
  }
  if (early != early_.end()) {
    std::vector<std::byte> held = std::move(early->second);
    early_.erase(early);
    if (delivery.target == nullptr) {
      incoming.held = std::move(held);
      incoming.early = Incoming::Early::kHere;
      return;
    }
    std::copy(held.begin(), held.end(), delivery.target + delivery.offset(request.stripe, 0));
  }
  note_here(delivery, request.stripe, request.index);
  post_receives(delivery, request.stripe);
  refresh(delivery);
  if (incoming.arrived < incoming.total) return;
  if (note_received(delivery)) {
    received_ = {delivery.id, request.stripe};
  } else {
    end_stripe(delivery, request.stripe);
  }
}

// The parent need not remember the stripe any more.
void Engine::end_stripe(Delivery& delivery, unsigned stripe) {
  leave_channel(delivery, stripe);
  write(delivery.incoming[stripe].peer, Answer{Reply::kDone, delivery.incoming[stripe].number});
}

// Nobody has what only the lost rank had. Others may send what they have of it yet.
void Engine::lose_root(int peer) {
  for (const auto& [key, stream] : streams_) {
    if (key.root != peer) continue;
    for (const Receive& receive : stream->waiting) {
      events_.push_back({Event::Kind::kLost, receive.operation, peer, {}});
    }
  }
  for (const auto& [id, delivery] : deliveries_) {
    if (delivery->key.root != peer || delivery->over || delivery->operation == 0) continue;
    for (unsigned stripe = 0; stripe < delivery->stripes; ++stripe) {
      const Incoming& incoming = delivery->incoming[stripe];
      if (incoming.arrived == incoming.total || (incoming.peer >= 0 && incoming.peer != peer)) continue;
      events_.push_back({Event::Kind::kLost, delivery->operation, peer, {}});
      break;
    }
  }
}

// Whether all is here since now, for a receive or for nobody.
bool Engine::note_received(Delivery& delivery) {
  if (delivery.received || (!delivery.inlined && !delivery.has_all())) return false;
  if (!delivery.refused) {
    if (delivery.operation == 0) return false;  // in the pool
    if (!delivery.wanted.empty()) std::copy(delivery.store.begin(), delivery.store.end(), delivery.wanted.begin());
    note(Event::Kind::kReceived, delivery.operation, delivery.passage());
  }
  return delivery.received = true;
}

void Engine::check_received(Delivery& delivery) {
  if (note_received(delivery)) retire(delivery);
}

}  // namespace elbowroom::broadcast
