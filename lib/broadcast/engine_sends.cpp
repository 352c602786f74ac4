// The engine's side towards its children: branches, announcements, and segments that leave.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "engine.hpp"
#include "engine_state.hpp"

namespace elbowroom::broadcast {

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

// Whether all recipients have room for data that may come before their receives.
bool Engine::may_inline(std::span<const Recipient> list, std::size_t size) {
  return size == 0 || std::all_of(list.begin(), list.end(), [this, size](const Recipient& recipient) {
           const Peer& peer = peer_of(recipient.rank);
           return peer.inlined - peer.taken + size + kInlinedCost <= share();
         });
}

std::vector<Announcement> Engine::inlined(const Announcement& base, std::span<const Recipient> list,
                                          std::uint16_t own_group) {
  std::vector<Announcement> result;
  Announcement announcement = base;
  for (const Branch& branch : branches(base.tree, list.size(), groups_of(base.tree, list), own_group)) {
    announcement.receiver = list[branch.child];
    announcement.subtree = sublist(list, branch.subtree);
    announcement.tree = branch.tree;
    if (!is_lost(announcement.receiver.rank)) {
      result.push_back(announcement);
      continue;
    }
    events_.push_back({Event::Kind::kLost, 0, announcement.receiver.rank, {}});
    for (Announcement& orphan : inlined(announcement, announcement.subtree, announcement.receiver.group)) {
      result.push_back(std::move(orphan));
    }
  }
  return result;
}

void Engine::write_inlined(std::vector<Announcement>& announcements) {
  for (const Announcement& announcement : announcements) write(announcement.receiver.rank, announcement);
}

void Engine::add_branches(Delivery& delivery, unsigned stripe, const Tree& tree, std::span<const Recipient> list,
                          std::uint16_t own_group, int stage) {
  const auto add = [&](const Branch& branch) {
    auto outgoing = std::make_unique<Outgoing>();
    outgoing->receiver = list[branch.child];
    outgoing->tree = branch.tree;
    outgoing->subtree = sublist(list, branch.subtree);
    outgoing->stripe = stripe;
    outgoing->stage = stage + branch.stage;
    outgoing->total = delivery.total(stripe);
    delivery.outgoing.push_back(std::move(outgoing));
  };
  if (list.size() == 1) {
    add({0, {}, tree, 0});  // in every tree
  } else if (!list.empty()) {
    for (const Branch& branch : branches(tree, list.size(), groups_of(tree, list), own_group)) add(branch);
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
  const int rank = outgoing.receiver.rank;
  if (requests_.size() == requests_.capacity()) requests_.reserve(2 * requests_.size() + 64);  // for an early segment
  const std::uint64_t number = last_number_ + 1;
  Announced& announced = announced_[number] = {rank, &delivery, &outgoing, 0};
  Announcement announcement;
  announcement.early = may_send_early(delivery, outgoing);
  try {
    announcement.key = delivery.key;
    announcement.receiver = outgoing.receiver;
    announcement.number = number;
    announcement.size = delivery.size;
    announcement.segment = delivery.segment;
    announcement.stripe = static_cast<std::uint8_t>(outgoing.stripe);
    announcement.stripes = static_cast<std::uint8_t>(delivery.stripes);
    announcement.tree = outgoing.tree;
    announcement.subtree = outgoing.subtree;
    write(rank, announcement);
  } catch (...) {
    announced_.erase(number);
    throw;
  }
  last_number_ = number;
  outgoing.number = number;
  outgoing.announced = true;
  outgoing.announced_at = transport_.now();
  if (!announcement.early) return;
  announced.early = delivery.bytes(outgoing.stripe, 0);
  peer_of(rank).early += announced.early;
  send_segment(delivery, outgoing);
}

// Whether a recipient has no room for a first segment as far as this rank knows, and answers that may be here make some.
bool Engine::wants_answers(std::span<const Recipient> list, std::size_t bytes) {
  return bytes <= share() && std::any_of(list.begin(), list.end(), [this, bytes](const Recipient& recipient) {
           return peer_of(recipient.rank).early + bytes > share();
         });
}

// Whether the first segment may follow the announcement: the window is free, nothing else waits for it, and the child has
// room for it even where its receive is not posted yet.
bool Engine::may_send_early(const Delivery& delivery, const Outgoing& outgoing) {
  if (settings_.late != Late::kStoreForward || delivery.available(outgoing.stripe) == 0 || !ready_.empty())
    return false;
  const std::size_t bytes = delivery.bytes(outgoing.stripe, 0);
  const Peer& peer = peer_of(outgoing.receiver.rank);
  return !peer.apart && peer.early + bytes <= share() && fits(peer, bytes);
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
  check_sent(outgoing);
  announce(delivery);
}

// A child with a subtree has to say that it serves it.
void Engine::check_sent(Outgoing& outgoing) {
  const bool all = outgoing.next == outgoing.total && (outgoing.ready || outgoing.subtree.empty());
  if (outgoing.flying == 0 && (outgoing.closing || all)) outgoing.finished = true;
}

void Engine::on_answer(int peer, const Answer& answer) {
  const auto found = announced_.find(answer.number);
  if (found == announced_.end() || found->second.peer != peer) {
    throw BadMessage("number: nothing was announced by " + std::to_string(answer.number));
  }
  if (answer.channel >= transport_.channels()) {
    throw BadMessage("channel: " + std::to_string(answer.channel) + " does not exist");
  }
  Delivery* const delivery = found->second.delivery;
  Outgoing* const outgoing = found->second.outgoing;
  if (answer.reply != Reply::kBypass) peer_of(peer).early -= std::exchange(found->second.early, 0);
  if (answer.reply == Reply::kDone || answer.reply == Reply::kRefuse) announced_.erase(found);
  if (outgoing == nullptr || outgoing->finished) return;
  delivery->moved = transport_.now();
  switch (answer.reply) {
    case Reply::kReady:
      if (answer.from > outgoing->total) throw BadMessage("from: is beyond the last segment");
      outgoing->ready = true;
      outgoing->channel = answer.channel;
      outgoing->next = std::max(outgoing->next, answer.from);
      check_sent(*outgoing);
      if (outgoing->finished) announce(*delivery);
      break;
    case Reply::kBypass:
      take_over(*delivery, *outgoing);
      check_sent(*outgoing);
      announce(*delivery);
      break;
    case Reply::kRefuse:
      take_over(*delivery, *outgoing);
      close(*delivery, *outgoing);
      break;
    default: close(*delivery, *outgoing);
  }
  refresh(*delivery);
  let_through(peer);
}

// What the recipient has, this rank need not remember.
void Engine::on_taken(int peer, const Answer& answer) {
  Peer& recipient = peer_of(peer);
  if (answer.number > recipient.serial || answer.from > recipient.inlined) {
    throw BadMessage("number: " + std::to_string(answer.number) + " was not sent yet");
  }
  recipient.taken = std::max(recipient.taken, answer.from);
  for (auto& recent = recipient.recent; !recent.empty() && recent.front().first <= answer.number; recent.pop_front()) {
    const auto last = sent_.find(recent.front().second);
    if (last != sent_.end() && last->second <= recent.front().first) sent_.erase(last);
  }
}

void Engine::on_lost(int peer) {
  lost_[static_cast<std::size_t>(peer)] = true;
  std::erase_if(announced_, [peer](const auto& item) { return item.second.peer == peer; });
  peer_of(peer).early = 0;
  for (const auto& [id, delivery] : deliveries_) {
    if (delivery->over) continue;
    for (std::size_t i = 0; i < delivery->outgoing.size(); ++i) {
      Outgoing& outgoing = *delivery->outgoing[i];
      if (outgoing.receiver.rank != peer || outgoing.finished || outgoing.closing || !outgoing.announced) continue;
      events_.push_back({Event::Kind::kLost, delivery->operation, peer, {}});
      take_over(*delivery, outgoing);
      close(*delivery, outgoing);
    }
    refresh(*delivery);
  }
  lose_root(peer);
}

bool Engine::fits(const Peer& peer, std::size_t bytes) const {
  const std::size_t window = settings_.window;
  return (peer.in_flight == 0 || peer.in_flight + bytes <= window) &&
         (peer.apart || in_flight_ == 0 || in_flight_ + bytes <= window);
}

// Fills the window. The message whose next child has the highest priority goes first, then the one that began first.
void Engine::send_segments() {
  end_holds();
  while (!ready_.empty()) {
    Outgoing& outgoing = *ready_.begin()->second;
    Delivery& delivery = *deliveries_.at(ready_.begin()->first.delivery);
    const Peer& peer = peer_of(outgoing.receiver.rank);
    const std::size_t bytes = delivery.bytes(outgoing.stripe, outgoing.next);
    if (fits(peer, bytes)) {
      send_segment(delivery, outgoing);
    } else if (peer.in_flight != 0 && peer.in_flight + bytes > settings_.window) {
      refresh(delivery);  // the child's own window is full meanwhile
    } else if (!make_room()) {
      return;
    }
  }
}

// The window that all share is full. Ranks that take nothing for longer than their data should need leave it, and a message
// of which nothing is on its way goes besides: its receiver is not to wait for another rank's computation. A link that is
// merely slow is shared by few messages so. Whether anything changed.
bool Engine::make_room() {
  constexpr double kSlowest = 1e-7;  // s/B, also until something was sent
  constexpr double kMuch = 4;        // of the time that is expected
  constexpr int kMostApart = 4;
  constexpr int kMostTried = 64;
  const double now = transport_.now();
  if (now < moved_ + settings_.grace) {
    wake(moved_ + settings_.grace);
    return false;
  }
  moved_ = now;
  const double rate = seconds_per_byte_ > 0 ? std::min(seconds_per_byte_, kSlowest) : kSlowest;
  const double expected = std::max(2 * settings_.grace, kMuch * static_cast<double>(in_flight_) * rate);
  bool any = false;
  double next_look = std::numeric_limits<double>::infinity();
  for (auto& [rank, peer] : peers_) {
    if (peer.counted == 0) continue;
    if (now < peer.since + expected) {
      next_look = std::min(next_look, peer.since + expected);
      continue;
    }
    set_apart(peer);
    any = true;
  }
  int tried = 0;
  for (auto next = ready_.begin(); !any && apart_ < kMostApart && next != ready_.end() && tried < kMostTried;
       ++next, ++tried) {
    Delivery& delivery = *deliveries_.at(next->first.delivery);
    Peer& peer = peer_of(next->second->receiver.rank);
    const bool flying = std::any_of(delivery.outgoing.begin(), delivery.outgoing.end(),
                                    [](const auto& outgoing) { return outgoing->flying > 0; });
    if (flying || peer.in_flight > 0) continue;
    set_apart(peer);
    send_segment(delivery, *next->second);
    any = true;
    break;
  }
  if (!any) wake(next_look);
  return any;
}

// Until something that was sent to the rank arrives.
void Engine::set_apart(Peer& peer) {
  if (!std::exchange(peer.apart, true)) ++apart_;
  in_flight_ -= std::exchange(peer.counted, 0);
  ++peer.round;
}

namespace {

bool looks_awaited(const auto& outgoing) {
  return outgoing.announced && outgoing.next == 0 && !outgoing.ready && !outgoing.finished && !outgoing.closing &&
         !outgoing.bypassed;
}

}  // namespace

// Until when the child may be about to answer. Whoever answers first is often a leaf: to serve it before a child that others
// are behind would delay all of them by a whole message. An answer may take a tenth of that.
double Engine::awaited_until(const Delivery& delivery, const Outgoing& outgoing) {
  constexpr double kMost = 0.05;  // s
  const double message = static_cast<double>(delivery.bytes(outgoing.stripe, 0)) * seconds_per_byte_;
  return outgoing.announced_at + std::max(settings_.patience, std::min(0.1 * message, kMost));
}

// Notes what is to be sent next of a message; called wherever that may have changed. Children take turns by segment, and
// those that come first in the tree go first: so segments are pipelined through the whole tree, and a message of one segment
// is sent in the order of its priorities.
void Engine::refresh(Delivery& delivery) {
  withdraw(delivery);
  if (delivery.over) return;
  Outgoing* candidate = nullptr;
  std::int32_t priority = -1;
  double awaited = -1;
  for (const auto& outgoing : delivery.outgoing) {
    if (candidate == nullptr && looks_awaited(*outgoing)) {
      awaited = std::max(awaited, awaited_until(delivery, *outgoing));
    }
    if (!outgoing->ready || outgoing->next >= std::min(delivery.available(outgoing->stripe), outgoing->total)) continue;
    if (candidate == nullptr && awaited >= 0 && transport_.now() < awaited) {
      delivery.held_until = awaited;
      holds_.emplace(awaited, delivery.id);
      wake(awaited);
      return;
    }
    Peer& peer = peer_of(outgoing->receiver.rank);
    const std::size_t bytes = delivery.bytes(outgoing->stripe, outgoing->next);
    if (peer.in_flight != 0 && peer.in_flight + bytes > settings_.window) {
      peer.blocked.insert({-outgoing->receiver.priority, delivery.id});
      continue;
    }
    if (candidate == nullptr || outgoing->next < candidate->next) candidate = outgoing.get();
    priority = std::max(priority, outgoing->receiver.priority);
  }
  if (candidate == nullptr) return;
  if (candidate->total == 1) priority = candidate->receiver.priority;
  delivery.ready = Place{-priority, delivery.id};
  ready_.emplace(*delivery.ready, candidate);
}

void Engine::withdraw(Delivery& delivery) {
  if (delivery.ready) ready_.erase(*delivery.ready);
  if (delivery.held_until >= 0) holds_.erase({delivery.held_until, delivery.id});
  delivery.ready.reset();
  delivery.held_until = -1;
}

// The rank's window has room: for the first of the messages that wait for it. The next one is let through when that is sent.
void Engine::let_through(int rank) {
  Peer& peer = peer_of(rank);
  while (!peer.blocked.empty() && peer.in_flight < settings_.window) {
    const Place place = *peer.blocked.begin();
    peer.blocked.erase(peer.blocked.begin());
    const auto found = deliveries_.find(place.delivery);
    if (found == deliveries_.end()) continue;
    Delivery& delivery = *found->second;
    refresh(delivery);
    if (peer.blocked.count(place) != 0) return;
    // It may have sent that meanwhile, or serve another child first.
    if (delivery.ready && ready_.at(*delivery.ready)->receiver.rank == rank) return;
  }
}

void Engine::end_holds() {
  if (holds_.empty()) return;
  const double now = transport_.now();
  while (!holds_.empty() && holds_.begin()->first <= now) refresh(*deliveries_.at(holds_.begin()->second));
  if (!holds_.empty()) wake(holds_.begin()->first);
}

void Engine::send_segment(Delivery& delivery, Outgoing& outgoing) {
  const std::uint64_t index = outgoing.next;
  const std::size_t bytes = delivery.bytes(outgoing.stripe, index);
  const int rank = outgoing.receiver.rank;
  Peer& peer = peer_of(rank);
  if (outgoing.ready && outgoing.channel == kCommonChannel) {
    write(rank, Answer{Reply::kSegment, outgoing.number, index});
  }
  const double now = transport_.now();
  const Ticket ticket =
      add_request({&delivery, &outgoing, outgoing.stripe, index, bytes, now, peer.apart ? 0 : peer.round, true});
  ++outgoing.next;
  ++outgoing.flying;
  peer.in_flight += bytes;
  if (!peer.apart) {
    if (in_flight_ == 0) moved_ = now;
    if (peer.counted == 0) peer.since = now;
    peer.counted += bytes;
    in_flight_ += bytes;
  }
  if (!delivery.is_root) counters_.forwarded += bytes;
  transport_.send_data(rank, outgoing.channel, {delivery.source + delivery.offset(outgoing.stripe, index), bytes},
                       ticket);
  refresh(delivery);
  let_through(rank);
}

void Engine::on_sent(Ticket ticket) {
  const Request request = take_request(ticket);
  Delivery& delivery = *request.delivery;
  Outgoing& outgoing = *request.outgoing;
  const int rank = outgoing.receiver.rank;
  Peer& peer = peer_of(rank);
  delivery.moved = moved_ = peer.since = transport_.now();
  peer.in_flight -= request.bytes;
  if (request.round == peer.round) {
    peer.counted -= request.bytes;
    in_flight_ -= request.bytes;
  }
  if (std::exchange(peer.apart, false)) --apart_;
  // One child that computes is not to make the link look slow.
  const double observed = (delivery.moved - request.begun) / static_cast<double>(request.bytes);
  seconds_per_byte_ = seconds_per_byte_ > 0 ? std::min(observed, 2 * seconds_per_byte_) : observed;
  --outgoing.flying;
  check_sent(outgoing);
  if (outgoing.finished) announce(delivery);
  refresh(delivery);
  let_through(rank);
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
