// The engine's side towards its children: branches, announcements, and segments that leave.
#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "engine.hpp"
#include "engine_state.hpp"

namespace elbowroom::broadcast {

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
  for (Recipient& recipient : list) recipient.sequence = sent_[{context, recipient.rank, tag}]++;
  return list;
}

namespace {

std::vector<std::uint16_t> groups_of(const Tree& tree, std::span<const Recipient> list) {
  std::vector<std::uint16_t> groups;
  if (tree.two_level) {
    for (const Recipient& recipient : list) groups.push_back(recipient.group);
  }
  return groups;
}

std::vector<Recipient> sublist(std::span<const Recipient> list, const std::vector<std::size_t>& places) {
  std::vector<Recipient> result;
  result.reserve(places.size());
  for (const std::size_t place : places) result.push_back(list[place]);
  return result;
}

}  // namespace

void Engine::send_inlined(const Announcement& base, std::span<const Recipient> list, std::uint16_t own_group) {
  Announcement announcement = base;
  for (const Branch& branch : branches(base.tree, list.size(), groups_of(base.tree, list), own_group)) {
    announcement.receiver = list[branch.child];
    announcement.subtree = sublist(list, branch.subtree);
    announcement.tree = branch.tree;
    if (lost_[static_cast<std::size_t>(announcement.receiver.rank)]) {
      events_.push_back({Event::Kind::kLost, 0, announcement.receiver.rank, {}});
      const std::vector<Recipient> orphans = std::move(announcement.subtree);
      send_inlined(announcement, orphans, announcement.receiver.group);
    } else {
      write(announcement.receiver.rank, announcement);
    }
  }
}

void Engine::add_branches(Delivery& delivery, unsigned stripe, const Tree& tree, std::span<const Recipient> list,
                          std::uint16_t own_group, int stage) {
  const std::uint64_t total = delivery.total(stripe);
  for (const Branch& branch : branches(tree, list.size(), groups_of(tree, list), own_group)) {
    auto outgoing = std::make_unique<Outgoing>();
    outgoing->receiver = list[branch.child];
    outgoing->tree = branch.tree;
    outgoing->subtree = sublist(list, branch.subtree);
    outgoing->stripe = stripe;
    outgoing->stage = stage + branch.stage;
    outgoing->total = total;
    delivery.outgoing.push_back(std::move(outgoing));
  }
}

// Announces to the children of the first stage that is not over.
void Engine::announce(Delivery& delivery) {
  int stage = INT32_MAX;
  for (const auto& outgoing : delivery.outgoing) {
    if (!outgoing->finished) stage = std::min(stage, outgoing->stage);
  }
  // More children may be added while a lost one's are taken over.
  for (std::size_t i = 0; i < delivery.outgoing.size(); ++i) {
    Outgoing& outgoing = *delivery.outgoing[i];
    if (!outgoing.announced && !outgoing.finished && outgoing.stage <= stage) announce(delivery, outgoing);
  }
  retire(delivery);
}

void Engine::announce(Delivery& delivery, Outgoing& outgoing) {
  if (lost_[static_cast<std::size_t>(outgoing.receiver.rank)]) {
    events_.push_back({Event::Kind::kLost, delivery.operation, outgoing.receiver.rank, {}});
    outgoing.finished = true;
    take_over(delivery, outgoing);
    return;
  }
  if (free_channels_.empty() && channels_.size() < transport_.channels()) {
    free_channels_.push_back(static_cast<std::uint32_t>(channels_.size()));
    channels_.emplace_back();
  }
  if (free_channels_.empty()) {
    channel_wanted_ = true;
    return;
  }
  outgoing.channel = free_channels_.back();
  free_channels_.pop_back();
  channels_[outgoing.channel] = {outgoing.receiver.rank, &delivery, &outgoing};
  outgoing.announced = true;
  outgoing.announced_at = transport_.now();
  Announcement announcement;
  announcement.key = delivery.key;
  announcement.receiver = outgoing.receiver;
  announcement.channel = outgoing.channel;
  announcement.size = delivery.size;
  announcement.segment = delivery.segment;
  announcement.stripe = static_cast<std::uint8_t>(outgoing.stripe);
  announcement.stripes = static_cast<std::uint8_t>(delivery.stripes);
  announcement.tree = outgoing.tree;
  announcement.subtree = outgoing.subtree;
  write(outgoing.receiver.rank, announcement);
}

// Serves the children of a child that cannot.
void Engine::take_over(Delivery& delivery, Outgoing& outgoing) {
  if (outgoing.bypassed || outgoing.subtree.empty()) return;
  outgoing.bypassed = true;
  ++counters_.bypassed;
  const std::vector<Recipient> list = std::move(outgoing.subtree);
  outgoing.subtree.clear();
  add_branches(delivery, outgoing.stripe, outgoing.tree, list, outgoing.receiver.group, outgoing.stage);
}

// The child gets no more segments.
void Engine::close(Delivery& delivery, Outgoing& outgoing) {
  outgoing.closing = true;
  outgoing.ready = false;
  if (outgoing.flying == 0) outgoing.finished = true;
  announce(delivery);
}

void Engine::on_answer(int peer, const Answer& answer) {
  if (answer.channel >= channels_.size() || channels_[answer.channel].peer != peer) {
    throw BadMessage("channel: nothing was announced on number " + std::to_string(answer.channel));
  }
  Channel& channel = channels_[answer.channel];
  Delivery* const delivery = channel.delivery;
  Outgoing* const outgoing = channel.outgoing;
  if (answer.reply == Reply::kDone || answer.reply == Reply::kRefuse) {
    channel = {};
    free_channels_.push_back(answer.channel);
    if (std::exchange(channel_wanted_, false)) {
      for (const auto& [id, other] : deliveries_) {
        if (!other->over) announce(*other);
      }
    }
  }
  if (outgoing == nullptr || outgoing->finished) return;
  delivery->moved = transport_.now();
  switch (answer.reply) {
    case Reply::kReady:
      if (answer.from > outgoing->total) throw BadMessage("from: is beyond the last segment");
      outgoing->ready = true;
      outgoing->next = answer.from;
      break;
    case Reply::kBypass:
      take_over(*delivery, *outgoing);
      announce(*delivery);
      break;
    case Reply::kRefuse:
      take_over(*delivery, *outgoing);
      close(*delivery, *outgoing);
      break;
    case Reply::kDone: close(*delivery, *outgoing); break;
  }
}

void Engine::on_lost(int peer) {
  lost_[static_cast<std::size_t>(peer)] = true;
  for (std::uint32_t number = 0; number < channels_.size(); ++number) {
    if (channels_[number].peer != peer) continue;
    channels_[number] = {};
    free_channels_.push_back(number);
  }
  for (const auto& [id, delivery] : deliveries_) {
    if (delivery->over) continue;
    for (std::size_t i = 0; i < delivery->outgoing.size(); ++i) {
      Outgoing& outgoing = *delivery->outgoing[i];
      if (outgoing.receiver.rank != peer || outgoing.finished || outgoing.closing || !outgoing.announced) continue;
      events_.push_back({Event::Kind::kLost, delivery->operation, peer, {}});
      take_over(*delivery, outgoing);
      close(*delivery, outgoing);
    }
  }
}

// Fills the window. The message whose next child has the highest priority goes first, then the one that began first.
void Engine::send_segments() {
  for (;;) {
    if (in_flight_ >= settings_.window) return;
    const auto [delivery, outgoing] = next_to_send();
    if (outgoing == nullptr) return;
    const std::size_t bytes = delivery->bytes(outgoing->stripe, outgoing->next);
    if (in_flight_ != 0 && in_flight_ + bytes > settings_.window) return;
    send_segment(*delivery, *outgoing);
  }
}

// Within a message, children take turns by segment, and those that come first in the tree go first: so segments are
// pipelined through the whole tree, and a message of one segment is sent in the order of its priorities.
std::pair<Engine::Delivery*, Engine::Outgoing*> Engine::next_to_send() {
  std::pair<Delivery*, Outgoing*> best{nullptr, nullptr};
  std::int32_t best_priority = -1;
  for (const auto& [id, delivery] : deliveries_) {
    Outgoing* candidate = nullptr;
    std::int32_t priority = -1;
    for (const auto& outgoing : delivery->outgoing) {
      if (candidate == nullptr && is_awaited(*delivery, *outgoing)) break;
      if (!outgoing->ready || outgoing->next >= std::min(delivery->available(outgoing->stripe), outgoing->total)) {
        continue;
      }
      if (candidate == nullptr || outgoing->next < candidate->next) candidate = outgoing.get();
      priority = std::max(priority, outgoing->receiver.priority);
    }
    if (candidate == nullptr) continue;
    if (candidate->total == 1) priority = candidate->receiver.priority;
    if (priority > best_priority) {
      best = {delivery.get(), candidate};
      best_priority = priority;
    }
  }
  return best;
}

// Whether the child may be about to answer. Whoever answers first is often a leaf: to serve it before a child that others
// are behind would delay all of them by a whole message. An answer may take a tenth of that.
bool Engine::is_awaited(const Delivery& delivery, const Outgoing& outgoing) {
  if (!outgoing.announced || outgoing.ready || outgoing.finished || outgoing.closing || outgoing.bypassed) return false;
  constexpr double kMost = 0.05;  // s
  const double message = static_cast<double>(delivery.bytes(outgoing.stripe, 0)) * seconds_per_byte_;
  const double until = outgoing.announced_at + std::max(settings_.patience, std::min(0.1 * message, kMost));
  if (transport_.now() >= until) return false;
  transport_.wake(until);
  return true;
}

void Engine::send_segment(Delivery& delivery, Outgoing& outgoing) {
  const std::uint64_t index = outgoing.next++;
  const std::size_t bytes = delivery.bytes(outgoing.stripe, index);
  const Ticket ticket = add_request({&delivery, &outgoing, outgoing.stripe, index, bytes, transport_.now()});
  ++outgoing.flying;
  in_flight_ += bytes;
  if (!delivery.is_root) counters_.forwarded += bytes;
  transport_.send_data(outgoing.receiver.rank, outgoing.channel,
                       {delivery.source + delivery.offset(outgoing.stripe, index), bytes}, ticket);
}

void Engine::on_sent(Ticket ticket) {
  const Request request = take_request(ticket);
  in_flight_ -= request.bytes;
  Delivery& delivery = *request.delivery;
  Outgoing& outgoing = *request.outgoing;
  --outgoing.flying;
  delivery.moved = transport_.now();
  seconds_per_byte_ = (delivery.moved - request.begun) / static_cast<double>(request.bytes);
  if (outgoing.flying == 0 && (outgoing.closing || outgoing.next == outgoing.total)) {
    outgoing.finished = true;
    announce(delivery);
  }
}

void Engine::write(int peer, const Announcement& announcement) {
  if (observer_ != nullptr) observer_->announced(peer, announcement);
  encode(announcement, buffer_);
  transport_.send_control(peer, buffer_);
}

void Engine::write(int peer, const Answer& answer) {
  encode(answer, buffer_);
  transport_.send_control(peer, buffer_);
}

}  // namespace elbowroom::broadcast
