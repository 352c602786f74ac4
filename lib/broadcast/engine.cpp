#include "engine.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

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
    if (requests_[ticket].delivery != nullptr && requests_[ticket].outgoing == nullptr) transport_.cancel(ticket);
  }
}

Engine::Stream& Engine::stream_of(const Key& key) {
  std::unique_ptr<Stream>& stream = streams_[key];
  if (!stream) stream = std::make_unique<Stream>();
  return *stream;
}

Operation Engine::receive(const Key& key, std::span<std::byte> data) {
  if (key.root < 0 || key.root >= transport_.size() || key.root == transport_.rank()) {
    throw std::invalid_argument("root " + std::to_string(key.root) + ": is not another rank; use 0 to " +
                                std::to_string(transport_.size() - 1) + " without " +
                                std::to_string(transport_.rank()));
  }
  Stream& stream = stream_of(key);
  const Operation operation = ++last_operation_;
  const std::uint32_t sequence = stream.posted++;
  ++counters_.receives;
  stream.waiting[sequence] = {operation, data, transport_.now()};
  if (const auto found = stream.arrived.find(sequence); found != stream.arrived.end()) {
    match(stream, *found->second);
    send_segments();
    erase_finished();
  }
  return operation;
}

Operation Engine::send(std::uint32_t context, std::int64_t tag, std::span<const std::byte> data,
                       std::span<const Destination> destinations, const Way& way) {
  std::vector<Recipient> list = recipients(context, tag, destinations);
  const Operation operation = ++last_operation_;
  ++(list.size() > 1 ? counters_.broadcasts : counters_.sends);
  Announcement base;
  base.key = {context, transport_.rank(), tag};
  base.size = data.size();
  base.tree = way.tree;
  if (data.size() <= settings_.inline_limit) {
    base.inlined = true;
    base.payload = data;
    send_inlined(base, list, group_of(transport_.rank()));
    note(Event::Kind::kReleased, operation, {base.key, base.tree, 1, base.size});
    return operation;
  }
  base.segment = segment_of(data.size(), way.segment);
  if (way.two_trees) {
    base.tree = parse_tree("delegate-binary");
    base.tree.two_level = !settings_.groups.empty();
    base.stripes = segments(base.size, base.segment) > 1 ? 2 : 1;
  }
  Delivery& delivery = add_delivery(base);
  delivery.operation = operation;
  delivery.is_root = true;
  delivery.source = data.data();
  for (unsigned stripe = 0; stripe < delivery.stripes; ++stripe) {
    add_branches(delivery, stripe, base.tree, list, delivery.group, 0);
    std::reverse(list.begin(), list.end());
    std::stable_sort(list.begin(), list.end(), [this](const Recipient& a, const Recipient& b) {
      return slowness_of(a.rank) < slowness_of(b.rank);
    });
  }
  announce(delivery);
  send_segments();
  erase_finished();
  return operation;
}

bool Engine::step() {
  Happening happening;
  if (!transport_.poll(happening)) return false;
  switch (happening.kind) {
    case Happening::Kind::kControl: on_message(happening.peer, happening.bytes); break;
    case Happening::Kind::kSent: on_sent(happening.ticket); break;
    case Happening::Kind::kReceived: on_received(happening.ticket); break;
    case Happening::Kind::kLost: on_lost(happening.peer); break;
    case Happening::Kind::kWake: break;
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
    for (const auto& [sequence, receive] : stream->waiting) {
      if (now - receive.since >= seconds) {
        result.push_back({receive.operation, key, sequence, now - receive.since, {key.root}});
      }
    }
  }
  for (const auto& [id, delivery] : deliveries_) {
    if (now - delivery->moved < seconds) continue;
    Stall stall{delivery->operation, delivery->key, delivery->sequence, now - delivery->moved, {}};
    for (const auto& outgoing : delivery->outgoing) {
      if (!outgoing->finished) stall.ranks.push_back(outgoing->receiver.rank);
    }
    for (unsigned stripe = 0; stripe < delivery->stripes && !delivery->is_root; ++stripe) {
      const Incoming& incoming = delivery->incoming[stripe];
      if (delivery->target != nullptr && incoming.arrived < delivery->total(stripe)) {
        stall.ranks.push_back(incoming.peer >= 0 ? incoming.peer : delivery->key.root);
      }
    }
    // Data without a receive wait for this rank's own program.
    if (!stall.ranks.empty()) result.push_back(std::move(stall));
  }
  return result;
}

bool Engine::idle() const {
  const auto busy = [](const auto& item) { return !item.second->waiting.empty() || !item.second->arrived.empty(); };
  return deliveries_.empty() && std::none_of(streams_.begin(), streams_.end(), busy);
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
  if (!delivery.is_root) stream_of(delivery.key).arrived.erase(delivery.sequence);
  if (delivery.operation != 0) note(Event::Kind::kReleased, delivery.operation, delivery.passage());
  for (Channel& channel : channels_) {
    if (channel.delivery == &delivery) {
      channel.delivery = nullptr;
      channel.outgoing = nullptr;
    }
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

Ticket Engine::add_request(const Request& request) {
  if (free_requests_.empty()) {
    requests_.push_back(request);
    return requests_.size() - 1;
  }
  const Ticket ticket = free_requests_.back();
  free_requests_.pop_back();
  requests_[ticket] = request;
  return ticket;
}

Engine::Request Engine::take_request(Ticket ticket) {
  const Request request = requests_[ticket];
  requests_[ticket] = {};
  free_requests_.push_back(ticket);
  return request;
}

int Engine::slowness_of(int rank) const { return slowness_.empty() ? 0 : slowness_[static_cast<std::size_t>(rank)]; }

std::uint16_t Engine::group_of(int rank) const {
  return settings_.groups.empty() ? 0 : settings_.groups[static_cast<std::size_t>(rank)];
}

}  // namespace elbowroom::broadcast
