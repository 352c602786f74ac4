#include "pmpi/matching.hpp"

#include <algorithm>

namespace elbowroom::pmpi {

Posted Matching::post(int source, int tag) {
  const Posted receive = place(source, tag);
  if (receive.wild()) {
    wild_.push_back({receive, 0});
  } else {
    streams_[pair_key(source, tag)].pending.push_back(receive.serial);
  }
  return receive;
}

void Matching::name(const Posted& receive, std::uintptr_t request) {
  for (Wild& wild : wild_) {
    if (wild.receive.serial == receive.serial) {
      wild.request = request;
    }
  }
}

void Matching::remove(const Posted& receive) {
  if (receive.wild()) {
    std::erase_if(wild_, [&](const Wild& wild) { return wild.receive.serial == receive.serial; });
  } else {
    std::erase(streams_[pair_key(receive.source, receive.tag)].pending, receive.serial);
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
  Stream& stream = streams_[pair_key(source, tag)];
  std::size_t before = 0;
  for (const std::uint64_t serial : stream.pending) {
    before += serial < receive.serial ? 1 : 0;
  }
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
  const std::uint32_t number = stream.take(before);
  // Numbers rise with places: one that was posted earlier than the last by number had its own given away.
  if (number > stream.highest) {
    swapped_ += receive.serial < stream.latest ? 1 : 0;
    stream.highest = number;
    stream.latest = std::max(stream.latest, receive.serial);
  }
  return number;
}

}  // namespace elbowroom::pmpi
