// The engine's side towards its parents: announcements, receives, and segments that arrive.
#include <algorithm>

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
    } else {
      on_answer(peer, std::get<Answer>(message));
    }
  } catch (const BadMessage& error) {
    fail(0, peer, "a message of rank " + std::to_string(peer) + " is damaged: " + error.what());
  }
}

void Engine::on_inlined(const Announcement& announcement) {
  if (!announcement.subtree.empty()) {
    counters_.forwarded += announcement.size * announcement.subtree.size();
    send_inlined(announcement, announcement.subtree, announcement.receiver.group);
  }
  Stream& stream = stream_of(announcement.key);
  const std::uint32_t sequence = announcement.receiver.sequence;
  if (stream.finished(sequence) || stream.arrived.count(sequence) != 0) return;
  if (const auto found = stream.waiting.find(sequence); found != stream.waiting.end()) {
    const Receive receive = found->second;
    stream.waiting.erase(found);
    if (receive.data.size() != announcement.size) {
      fail(receive.operation, announcement.key.root,
           "receives " + std::to_string(receive.data.size()) + " bytes, but " + std::to_string(announcement.size) +
               " were sent");
      return;
    }
    std::copy(announcement.payload.begin(), announcement.payload.end(), receive.data.begin());
    const Passage passage{announcement.key, announcement.tree, 1, announcement.size};
    note(Event::Kind::kReceived, receive.operation, passage);
    note(Event::Kind::kReleased, receive.operation, passage);
    return;
  }
  Delivery& delivery = add_delivery(announcement);
  delivery.inlined = true;
  delivery.store.assign(announcement.payload.begin(), announcement.payload.end());
  stream.arrived[sequence] = &delivery;
}

void Engine::on_announcement(int peer, Announcement& announcement) {
  Stream& stream = stream_of(announcement.key);
  const std::uint32_t sequence = announcement.receiver.sequence;
  if (stream.finished(sequence)) {
    // A new parent after the loss of the former one: all is here, and the children are served.
    write(peer, Answer{Reply::kDone, announcement.channel, 0});
    return;
  }
  const auto found = stream.arrived.find(sequence);
  Delivery& delivery = found != stream.arrived.end() ? *found->second : add_delivery(announcement);
  if (found == stream.arrived.end()) {
    stream.arrived[sequence] = &delivery;
  } else if (delivery.size != announcement.size || delivery.segment != announcement.segment ||
             delivery.stripes != announcement.stripes) {
    write(peer, Answer{Reply::kRefuse, announcement.channel, 0});
    throw BadMessage("size: contradicts an earlier announcement of the same data");
  }
  attach(delivery, peer, announcement);
  const unsigned stripe = announcement.stripe;
  if (delivery.refused) {
    write(peer, Answer{Reply::kRefuse, announcement.channel, 0});
    complete(delivery);
  } else if (delivery.incoming[stripe].begun) {
    resume(delivery, stripe);
  } else if (delivery.target != nullptr) {
    begin(delivery, stripe);
  } else {
    match(stream, delivery);
  }
}

Engine::Delivery& Engine::add_delivery(const Announcement& announcement) {
  auto owned = std::make_unique<Delivery>();
  Delivery& delivery = *owned;
  delivery.id = ++last_delivery_;
  delivery.key = announcement.key;
  delivery.sequence = announcement.receiver.sequence;
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
  Incoming& incoming = delivery.incoming[announcement.stripe];
  for (const Ticket ticket : incoming.tickets) {
    transport_.cancel(ticket);
    take_request(ticket);
  }
  incoming.tickets.clear();
  incoming.posted = incoming.arrived;
  const bool is_new = incoming.peer < 0;
  incoming.peer = peer;
  incoming.channel = announcement.channel;
  incoming.total = delivery.total(announcement.stripe);
  incoming.here.resize(static_cast<std::size_t>(incoming.total));
  std::fill(incoming.here.begin() + static_cast<std::ptrdiff_t>(incoming.arrived), incoming.here.end(), false);
  if (is_new || incoming.bypassed) {
    incoming.tree = announcement.tree;
    incoming.subtree = std::move(announcement.subtree);
  }
}

// Gives the data to the receive that waits for them, if there is one.
void Engine::match(Stream& stream, Delivery& delivery) {
  const auto found = stream.waiting.find(delivery.sequence);
  if (found == stream.waiting.end()) {
    hold(delivery);
    return;
  }
  const Receive receive = found->second;
  stream.waiting.erase(found);
  if (receive.data.size() != delivery.size) {
    refuse(delivery, receive.operation, receive.data.size());
  } else {
    accept(delivery, receive.operation, receive.data);
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
    write(incoming.peer, Answer{Reply::kBypass, incoming.channel, 0});
  }
}

// The receive is over; the parents serve the children.
void Engine::refuse(Delivery& delivery, Operation operation, std::size_t size) {
  fail(operation, delivery.key.root,
       "receives " + std::to_string(size) + " bytes, but " + std::to_string(delivery.size) + " were sent");
  if (delivery.inlined) {
    delivery.received = true;
    retire(delivery);
    return;
  }
  if (delivery.pooled) {  // they are forwarded from the pool, and nobody here wants them
    delivery.refused = true;
    check_received(delivery);
    return;
  }
  delivery.refused = true;
  for (unsigned stripe = 0; stripe < delivery.stripes; ++stripe) {
    const Incoming& incoming = delivery.incoming[stripe];
    if (incoming.peer >= 0) write(incoming.peer, Answer{Reply::kRefuse, incoming.channel, 0});
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
  announce(delivery);
  write(incoming.peer, Answer{Reply::kReady, incoming.channel, incoming.arrived});
  post_receives(delivery, stripe);
}

// Goes on with another parent than before.
void Engine::resume(Delivery& delivery, unsigned stripe) {
  Incoming& incoming = delivery.incoming[stripe];
  if (incoming.bypassed) {
    incoming.bypassed = false;
    add_branches(delivery, stripe, incoming.tree, incoming.subtree, delivery.group, 0);
    announce(delivery);
  }
  if (incoming.arrived == incoming.total) {
    write(incoming.peer, Answer{Reply::kDone, incoming.channel, 0});
    return;
  }
  write(incoming.peer, Answer{Reply::kReady, incoming.channel, incoming.arrived});
  post_receives(delivery, stripe);
}

void Engine::post_receives(Delivery& delivery, unsigned stripe) {
  Incoming& incoming = delivery.incoming[stripe];
  while (incoming.posted < incoming.total && incoming.posted < incoming.arrived + settings_.posted) {
    const std::uint64_t index = incoming.posted++;
    const std::size_t bytes = delivery.bytes(stripe, index);
    const Ticket ticket = add_request({&delivery, nullptr, stripe, index, bytes});
    incoming.tickets.push_back(ticket);
    transport_.receive_data(incoming.peer, incoming.channel, {delivery.target + delivery.offset(stripe, index), bytes},
                            ticket);
  }
}

void Engine::on_received(Ticket ticket) {
  const Request request = take_request(ticket);
  Delivery& delivery = *request.delivery;
  Incoming& incoming = delivery.incoming[request.stripe];
  std::erase(incoming.tickets, ticket);
  incoming.here[static_cast<std::size_t>(request.index)] = true;
  while (incoming.arrived < incoming.total && incoming.here[static_cast<std::size_t>(incoming.arrived)]) {
    ++incoming.arrived;
  }
  delivery.moved = transport_.now();
  post_receives(delivery, request.stripe);
  if (incoming.arrived == incoming.total) {
    write(incoming.peer, Answer{Reply::kDone, incoming.channel, 0});
    check_received(delivery);
  }
}

void Engine::check_received(Delivery& delivery) {
  if (delivery.received || (!delivery.inlined && !delivery.has_all())) return;
  if (delivery.refused) {
    delivery.received = true;
    retire(delivery);
    return;
  }
  if (delivery.operation == 0) return;  // in the pool
  if (!delivery.wanted.empty()) std::copy(delivery.store.begin(), delivery.store.end(), delivery.wanted.begin());
  delivery.received = true;
  note(Event::Kind::kReceived, delivery.operation, delivery.passage());
  retire(delivery);
}

}  // namespace elbowroom::broadcast
