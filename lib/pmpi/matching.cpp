#include "pmpi/matching.hpp"

#include <algorithm>
#include <iterator>

namespace elbowroom::pmpi {

Posted Matching::post(int source, int tag) {
  const Posted receive = place(source, tag);
  if (receive.wild()) {
    wild_.push_back({receive, 0});
  } else {
    stream(source, tag).pending.push_back(receive.serial);
  }
  return receive;
}

Matching::Stream& Matching::stream(int source, int tag) {
  if (streams_.size() >= most_streams_) {
    fold_idle();
  }
  const auto [place, fresh] = streams_.try_emplace(pair_key(source, tag));
  if (fresh) {
    place->second.free = counts_.get(source, tag) + 1;
    place->second.highest = place->second.free - 1;
  }
  return place->second;
}

void Matching::fold_idle() {
  for (auto place = streams_.begin(); place != streams_.end();) {
    const Stream& one = place->second;
    // Whether an earlier receive has its number from a later one, the stream says.
    const bool is_idle =
        one.pending.empty() && one.given.empty() && (wild_.empty() || wild_.front().receive.serial > one.latest);
    if (is_idle && one.free > 1) {
      counts_.set(static_cast<int>(place->first >> 32), static_cast<int>(place->first & 0xFFFFFFFFU), one.free - 1);
    }
    place = is_idle ? streams_.erase(place) : std::next(place);
  }
  most_streams_ = std::max(kFewStreams, 2 * streams_.size());
}

// Places ascend.
std::vector<Matching::Wild>::iterator Matching::find(const Posted& receive) {
  const auto place =
      std::lower_bound(wild_.begin(), wild_.end(), receive.serial,
                       [](const Wild& wild, std::uint64_t serial) { return wild.receive.serial < serial; });
  return place != wild_.end() && place->receive.serial == receive.serial ? place : wild_.end();
}

void Matching::name(const Posted& receive, std::uintptr_t request) {
  if (const auto wild = find(receive); wild != wild_.end()) {
    wild->request = request;
  }
}

void Matching::remove(const Posted& receive) {
  if (receive.wild()) {
    if (const auto wild = find(receive); wild != wild_.end()) {
      wild_.erase(wild);
    }
    return;
  }
  const auto known = streams_.find(pair_key(receive.source, receive.tag));
  if (known == streams_.end()) {
    return;  // it was never pending
  }
  std::vector<std::uint64_t>& pending = known->second.pending;
  const auto place = std::lower_bound(pending.begin(), pending.end(), receive.serial);
  if (place != pending.end() && *place == receive.serial) {
    pending.erase(place);
  }
}

// The number after as many free ones as other receives have a right to.
std::uint32_t Matching::Stream::take(std::size_t after) {
  std::uint32_t number = free;
  auto next = given.begin();
  while (true) {
    if (next != given.end() && *next == number) {
      ++next;
    } else if (after == 0) {
      break;
    } else {
      --after;
    }
    ++number;
  }
  if (number != free) {
    given.insert(next, number);
    return number;
  }
  ++free;
  while (!given.empty() && given.front() == free) {
    given.erase(given.begin());
    ++free;
  }
  return number;
}

std::uint32_t Matching::complete(const Posted& receive, int source, int tag, const Ask& ask) {
  remove(receive);
  Stream& own = stream(source, tag);
  auto before = static_cast<std::size_t>(std::lower_bound(own.pending.begin(), own.pending.end(), receive.serial) -
                                         own.pending.begin());
  for (const Wild& wild : wild_) {
    if (wild.receive.serial > receive.serial) {
      break;
    }
    const bool may = (wild.receive.source == kAny || wild.receive.source == source) &&
                     (wild.receive.tag == kAny || wild.receive.tag == tag);
    if (may && wild.request != 0 && ask(wild.receive, wild.request) == std::pair(source, tag)) {
      ++before;
    }
  }
  const std::uint32_t number = own.take(before);
  // Numbers rise with places: one that was posted earlier than the last by number had its own given away.
  if (number > own.highest) {
    swapped_ += receive.serial < own.latest ? 1 : 0;
    own.highest = number;
    own.latest = std::max(own.latest, receive.serial);
  }
  return number;
}

}  // namespace elbowroom::pmpi
