#include "engine.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "engine_state.hpp"

namespace elbowroom::broadcast {

namespace {

// Only what differs much counts: else links that differ by their noise would decide about the order.
std::vector<int> slowness(const std::vector<double>& speeds, std::size_t size) {
  if (speeds.empty()) return {};
  if (speeds.size() != size) {
    throw std::invalid_argument("speeds: has " + std::to_string(speeds.size()) + " entries; give one for each of the " +
                                std::to_string(size) + " ranks");
  }
  double fastest = 0;
  for (std::size_t rank = 0; rank < size; ++rank) {
    if (!(speeds[rank] > 0) || !std::isfinite(speeds[rank])) {
      throw std::invalid_argument("speeds: that of rank " + std::to_string(rank) + " is " +
                                  std::to_string(speeds[rank]) + "; give numbers above 0");
    }
    fastest = std::max(fastest, speeds[rank]);
  }
  std::vector<int> result;
  result.reserve(size);
  for (const double speed : speeds) result.push_back(static_cast<int>(std::log2(fastest / speed)));
  return result;
}

}  // namespace

std::size_t Engine::KeyHash::operator()(const Key& key) const {
  std::uint64_t bits = static_cast<std::uint64_t>(key.tag) * 0x9E3779B97F4A7C15U;
  bits ^= (static_cast<std::uint64_t>(key.context) << 32) | static_cast<std::uint32_t>(key.root);
  bits *= 0xD6E8FEB86659FD93U;
  return static_cast<std::size_t>(bits ^ (bits >> 32));
}

Engine::Engine(Transport& transport, Settings settings) : transport_(transport), settings_(std::move(settings)) {
  const auto size = static_cast<std::size_t>(transport_.size());
  if (!settings_.groups.empty() && settings_.groups.size() != size) {
    throw std::invalid_argument("groups: has " + std::to_string(settings_.groups.size()) +
                                " entries; give one for each of the " + std::to_string(size) + " ranks");
  }
  lost_.resize(size);
  slowness_ = slowness(settings_.speeds, size);
}

Engine::~Engine() {
  for (Ticket ticket = 0; ticket < requests_.size(); ++ticket) {
    if (requests_[ticket].open && requests_[ticket].outgoing == nullptr) transport_.cancel(ticket);
  }
}

Engine::Peer& Engine::peer_of(int rank) { return peers_[rank]; }

Engine::Stream& Engine::stream_of(const Key& key) {
  std::unique_ptr<Stream>& stream = streams_[key];
  if (!stream) stream = std::make_unique<Stream>();
  return *stream;
}

// Programs may use a tag for each datum.
void Engine::erase_if_empty(const Key& key) {
  const auto found = streams_.find(key);
  if (found != streams_.end() && found->second->waiting.empty() && found->second->arrived.empty()) {
    streams_.erase(found);
  }
}

Operation Engine::receive(const Key& key, std::span<std::byte> data) {
  if (key.root < 0 || key.root >= transport_.size() || key.root == transport_.rank()) {
    throw std::invalid_argument("root " + std::to_string(key.root) + ": is not another rank; use 0 to " +
                                std::to_string(transport_.size() - 1) + " without " +
                                std::to_string(transport_.rank()));
  }
  Stream& stream = stream_of(key);
  const Operation operation = last_operation_ + 1;
  stream.waiting.push_back({operation, data, transport_.now(), false});
  last_operation_ = operation;
  ++counters_.receives;
  match(stream);
  // Others may have the data and send them yet.
  if (is_lost(key.root) && !stream.waiting.empty()) events_.push_back({Event::Kind::kLost, operation, key.root, {}});
  erase_if_empty(key);
  send_segments();
  erase_finished();
  return operation;
}

std::vector<Recipient> Engine::recipients(std::uint32_t context, std::int64_t tag,
                                          std::span<const Destination> destinations) {
  const int self = transport_.rank();
  const int size = transport_.size();
  if (destinations.empty()) throw std::invalid_argument("recipients: there is none; give at least one rank");
  std::vector<Recipient> list;
  list.reserve(destinations.size());
  for (const auto& [rank, priority] : destinations) {
    if (rank < 0 || rank >= size || rank == self) {
      throw std::invalid_argument("recipient " + std::to_string(rank) + ": is not another rank; use 0 to " +
                                  std::to_string(size - 1) + " without " + std::to_string(self));
    }
    if (priority < 0) {
      throw std::invalid_argument("priority " + std::to_string(priority) + " of rank " + std::to_string(rank) +
                                  ": is negative; use 0 or more");
    }
    list.push_back({rank, priority, 0, group_of(rank)});
  }
  if (list.size() > 1) sort(list);
  for (Recipient& recipient : list) {
    const Key key{context, recipient.rank, tag};
    Peer& peer = peer_of(recipient.rank);
    recipient.serial = peer.serial + 1;
    recipient.previous = sent_[key];
    peer.recent.emplace_back(recipient.serial, key);
  }
  return list;
}

// The order in which to serve them. Throws std::invalid_argument where one is named twice.
void Engine::sort(std::vector<Recipient>& list) const {
  const int self = transport_.rank();
  const int size = transport_.size();
  // Equal priorities are served from the rank behind the root on, so that roots use different ranks for forwarding.
  const auto place = [self, size](const Recipient& recipient) { return (recipient.rank - self + size) % size; };
  // Those with slow links come last: leaves forward nothing.
  std::sort(list.begin(), list.end(), [&](const Recipient& a, const Recipient& b) {
    return std::tuple(-a.priority, slowness_of(a.rank), place(a)) <
           std::tuple(-b.priority, slowness_of(b.rank), place(b));
  });
  std::vector<bool> named(static_cast<std::size_t>(size));
  for (const Recipient& recipient : list) {
    if (named[static_cast<std::size_t>(recipient.rank)]) {
      throw std::invalid_argument("recipient " + std::to_string(recipient.rank) + ": is named twice; name it once");
    }
    named[static_cast<std::size_t>(recipient.rank)] = true;
  }
}

// What needs memory comes first: where there is none, nothing was sent, and the serials are as before.
Operation Engine::send(std::uint32_t context, std::int64_t tag, std::span<const std::byte> data,
                       std::span<const Destination> destinations, const Way& way) {
  std::vector<Recipient> list = recipients(context, tag, destinations);
  buffer_.reserve(kMostHead + kMostRecipient * list.size());
  unannounced_.reserve(unannounced_.size() + 1);
  Announcement base;
  base.key = {context, transport_.rank(), tag};
  base.size = data.size();
  base.tree = way.tree;
  if (data.size() <= settings_.inline_limit && may_inline(list, data.size())) {
    base.inlined = true;
    base.payload = data;
    buffer_.reserve(kMostHead + kMostRecipient * list.size() + data.size());
    std::vector<Announcement> announcements = inlined(base, list, group_of(transport_.rank()));
    const Operation operation = last_operation_ + 1;
    note(Event::Kind::kReleased, operation, {base.key, base.tree, 1, base.size});
    commit(context, tag, list);
    for (const Recipient& recipient : list) peer_of(recipient.rank).inlined += data.size() + kInlinedCost;
    write_inlined(announcements);
    return operation;
  }
  base.segment = segment_of(data.size(), way.segment);
  if (wants_answers(list, static_cast<std::size_t>(base.segment))) progress();
  if (way.two_trees) {
    base.tree = parse_tree("delegate-binary");
    base.tree.two_level = !settings_.groups.empty();
    base.stripes = segments(base.size, base.segment) > 1 ? 2 : 1;
  }
  Delivery& delivery = add_delivery(base);
  delivery.operation = last_operation_ + 1;
  delivery.is_root = true;
  delivery.source = data.data();
  try {
    add_branches(delivery, 0, base.tree, list, delivery.group, 0);
    if (delivery.stripes > 1) {
      std::vector<Recipient> order(list.rbegin(), list.rend());
      std::stable_sort(order.begin(), order.end(), [this](const Recipient& a, const Recipient& b) {
        return slowness_of(a.rank) < slowness_of(b.rank);
      });
      add_branches(delivery, 1, base.tree, order, delivery.group, 0);
    }
  } catch (const std::bad_alloc&) {
    deliveries_.erase(delivery.id);
    throw;
  }
  commit(context, tag, list);
  const std::uint64_t id = delivery.id;
  try {
    announce(delivery);
    send_segments();
  } catch (const std::bad_alloc&) {
    unannounced_.push_back(id);  // it has begun, and goes on when there is memory
  }
  erase_finished();
  return last_operation_;
}

// The send has begun.
void Engine::commit(std::uint32_t context, std::int64_t tag, std::span<const Recipient> list) {
  ++last_operation_;
  ++(list.size() > 1 ? counters_.broadcasts : counters_.sends);
  for (const Recipient& recipient : list) {
    peer_of(recipient.rank).serial = recipient.serial;
    sent_[{context, recipient.rank, tag}] = recipient.serial;
  }
}

void Engine::retry() {
  while (!unannounced_.empty()) {
    const auto found = deliveries_.find(unannounced_.back());
    if (found != deliveries_.end() && !found->second->over) {
      announce(*found->second);
      refresh(*found->second);
    }
    unannounced_.pop_back();
  }
}

// What the program need not wait for once it may read the data.
bool Engine::settle() {
  if (!received_) return false;
  const auto [id, stripe] = *std::exchange(received_, std::nullopt);
  Delivery& delivery = *deliveries_.at(id);
  end_stripe(delivery, stripe);
  retire(delivery);
  erase_finished();
  return true;
}

bool Engine::step() {
  Happening happening;
  retry();
  if (settle()) return true;
  if (!transport_.poll(happening)) return false;
  switch (happening.kind) {
    case Happening::Kind::kControl: on_message(happening.peer, happening.bytes); break;
    case Happening::Kind::kSent: on_sent(happening.ticket); break;
    case Happening::Kind::kReceived: on_received(happening.ticket); break;
    case Happening::Kind::kLost: on_lost(happening.peer); break;
    case Happening::Kind::kWake: wake_at_ = std::numeric_limits<double>::infinity(); break;
  }
  send_segments();
  erase_finished();
  return true;
}

bool Engine::progress() {
  bool any = false;
  while (step()) any = true;
  return any;
}

std::optional<Event> Engine::next_event() {
  if (events_.empty()) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

std::vector<Stall> Engine::stalls(double seconds) {
  const double now = transport_.now();
  std::vector<Stall> result;
  for (const auto& [key, stream] : streams_) {
    for (Receive& receive : stream->waiting) {
      if (now - receive.since < seconds || std::exchange(receive.stall_told, true)) continue;
      result.push_back({receive.operation, key, now - receive.since, {key.root}, false});
    }
  }
  for (const auto& [id, delivery] : deliveries_) {
    if (now - delivery->moved < seconds) continue;
    Stall stall{delivery->operation, delivery->key, now - delivery->moved, {}, false};
    for (const auto& outgoing : delivery->outgoing) {
      if (outgoing->finished) continue;
      stall.ranks.push_back(outgoing->receiver.rank);
      stall.begun = stall.begun || outgoing->ready || outgoing->flying > 0;
    }
    for (unsigned stripe = 0; stripe < delivery->stripes && !delivery->is_root; ++stripe) {
      const Incoming& incoming = delivery->incoming[stripe];
      if (delivery->target != nullptr && incoming.arrived < delivery->total(stripe)) {
        stall.ranks.push_back(incoming.peer >= 0 ? incoming.peer : delivery->key.root);
        stall.begun = true;
      }
    }
    // Data without a receive wait for this rank's own program.
    const bool told = std::exchange(delivery->stall_told, !stall.ranks.empty());
    if (stall.ranks.empty() || (told && !stall.begun)) continue;
    if (stall.begun) delivery->moved = now;
    result.push_back(std::move(stall));
  }
  return result;
}

bool Engine::idle() const {
  if (!streams_.empty()) return false;
  if (!received_) return deliveries_.empty();
  // What was received a moment ago is over at the next step, unless others still get it from here.
  const auto& outgoing = deliveries_.at(received_->first)->outgoing;
  return deliveries_.size() == 1 &&
         std::all_of(outgoing.begin(), outgoing.end(), [](const auto& one) { return one->finished; });
}

std::size_t Engine::remembered() const {
  std::size_t count = streams_.size() + sent_.size() + arrived_.size();
  for (const auto& [rank, peer] : peers_) count += peer.recent.size() + peer.beyond.size() + peer.blocked.size();
  return count;
}

void Engine::erase_finished() {
  for (const std::uint64_t id : over_) deliveries_.erase(id);
  over_.clear();
}

// A delivery is over when its data have arrived, the program has them, and no child needs them.
void Engine::retire(Delivery& delivery) {
  if (delivery.over) return;
  if (!delivery.is_root && !delivery.received) return;
  for (const auto& outgoing : delivery.outgoing) {
    if (!outgoing->finished) return;
  }
  delivery.over = true;
  over_.push_back(delivery.id);
  if (delivery.pooled) pool_used_ -= delivery.store.size();
  if (!delivery.is_root) arrived_.erase({delivery.key.root, delivery.serial});
  if (delivery.operation != 0) note(Event::Kind::kReleased, delivery.operation, delivery.passage());
  withdraw(delivery);
  for (const auto& outgoing : delivery.outgoing) {
    const auto found = announced_.find(outgoing->number);
    if (found == announced_.end()) continue;
    found->second.delivery = nullptr;
    found->second.outgoing = nullptr;
  }
}

// The data of an operation are here, or free again.
void Engine::note(Event::Kind kind, Operation operation, const Passage& passage) {
  events_.push_back({kind, operation, -1, {}});
  if (observer_ == nullptr) return;
  kind == Event::Kind::kReceived ? observer_->received(passage) : observer_->released(passage);
}

void Engine::fail(Operation operation, int rank, std::string text) {
  events_.push_back({Event::Kind::kFailed, operation, rank, std::move(text)});
}

// The transport remembers one time.
void Engine::wake(double at) {
  if (at >= wake_at_) return;
  wake_at_ = at;
  transport_.wake(at);
}

Ticket Engine::add_request(const Request& request) {
  under_way_ += request.bytes;
  if (free_requests_.empty()) {
    requests_.push_back(request);
    requests_.back().open = true;
    return requests_.size() - 1;
  }
  const Ticket ticket = free_requests_.back();
  free_requests_.pop_back();
  requests_[ticket] = request;
  requests_[ticket].open = true;
  return ticket;
}

Engine::Request Engine::take_request(Ticket ticket) {
  const Request request = requests_[ticket];
  under_way_ -= request.bytes;
  requests_[ticket] = {};
  free_requests_.push_back(ticket);
  return request;
}

int Engine::slowness_of(int rank) const { return slowness_.empty() ? 0 : slowness_[static_cast<std::size_t>(rank)]; }

std::uint16_t Engine::group_of(int rank) const {
  return settings_.groups.empty() ? 0 : settings_.groups[static_cast<std::size_t>(rank)];
}

}  // namespace elbowroom::broadcast
