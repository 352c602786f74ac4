#include "trace/merge/open_messages.hpp"

#include <algorithm>

namespace elbowroom::trace {
namespace {

constexpr std::size_t kFewestPlaces = 1024;

// Finaliser of splitmix64 (S. Vigna, public domain): each bit of the key changes half of the result's.
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace

MessageKey message_key(bool sent, std::uint32_t rank, std::uint64_t first, std::uint32_t small, std::uint64_t second) {
  const auto peer = static_cast<std::uint32_t>(first);
  const std::uint64_t source = sent ? rank : peer;
  const std::uint64_t destination = sent ? peer : rank;
  return {(first >> 32) << 32 | small, source << 32 | destination, second >> kNumberedBits};
}

std::uint64_t hash_of(const MessageKey& key) {
  return mixed(mixed(mixed(key.route + 0x9e3779b97f4a7c15ULL) ^ key.ends) ^ key.number);
}

OpenMessages::OpenMessages(std::size_t most) : places_(kFewestPlaces), most_(most) {}

std::size_t OpenMessages::home(const MessageKey& key) const {
  return static_cast<std::size_t>(hash_of(key) & (places_.size() - 1));
}

OpenEnd* OpenMessages::find(const MessageKey& key) {
  for (std::size_t i = home(key); places_[i].message != 0; i = (i + 1) & (places_.size() - 1)) {
    if (places_[i].key == key) {
      return &places_[i];
    }
  }
  return nullptr;
}

void OpenMessages::place(const OpenEnd& end) {
  std::size_t i = home(end.key);
  while (places_[i].message != 0) {
    i = (i + 1) & (places_.size() - 1);
  }
  places_[i] = end;
}

void OpenMessages::add(const OpenEnd& end) {
  if (size_ == most_) {
    give_up_older_half();
  }
  if (2 * (size_ + 1) > places_.size()) {
    rebuild(2 * places_.size(), 0);
  }
  place(end);
  ++size_;
}

// Those that follow move up, so that none is behind a free place.
void OpenMessages::remove(OpenEnd* end) {
  const std::size_t last = places_.size() - 1;
  std::size_t hole = static_cast<std::size_t>(end - places_.data());
  for (std::size_t i = (hole + 1) & last; places_[i].message != 0; i = (i + 1) & last) {
    const std::size_t wanted = home(places_[i].key);
    if (((i - wanted) & last) >= ((i - hole) & last)) {
      places_[hole] = places_[i];
      hole = i;
    }
  }
  places_[hole].message = 0;
  --size_;
}

void OpenMessages::rebuild(std::size_t places, std::uint64_t oldest) {
  std::vector<OpenEnd> before(places);
  before.swap(places_);
  for (const OpenEnd& end : before) {
    if (end.message > oldest) {
      place(end);
    }
  }
}

std::vector<std::uint64_t> OpenMessages::messages() const {
  std::vector<std::uint64_t> result;
  for (const OpenEnd& end : places_) {
    if (end.message != 0) {
      result.push_back(end.message);
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

void OpenMessages::give_up_older_half() {
  const std::vector<std::uint64_t> open = messages();
  const std::size_t given_up = open.size() / 2 + 1;
  rebuild(places_.size(), open[given_up - 1]);
  given_up_ += given_up;
  size_ -= given_up;
}

}  // namespace elbowroom::trace
