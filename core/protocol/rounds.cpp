#include "protocol/rounds.hpp"

#include <sched.h>

namespace elbowroom {

void Rounds::open(std::size_t others) {
  others_ = others;
  round_.store(0);
  share_.store(0);
  working_.store(0);
  resting_.store(false);
  blocked_.store(0);
}

void Rounds::begin(std::int64_t share) {
  share_.store(share);
  working_.store(others_);
  round_.fetch_add(1, std::memory_order_release);
}

void Rounds::set_resting(bool resting) {
  if (resting_.exchange(resting) == resting) {
    return;
  }
  resting_.notify_all();
  while (blocked_.load() != (resting ? others_ : 0)) {
    sched_yield();
  }
}

void Rounds::rest() { set_resting(true); }

void Rounds::wake() { set_resting(false); }

void Rounds::close() {
  begin(kNoMore);
  resting_.store(false);
  resting_.notify_all();
}

std::int64_t Rounds::next(std::uint64_t& round) {
  while (round_.load(std::memory_order_acquire) == round) {
    if (resting_.load()) {
      blocked_.fetch_add(1);
      resting_.wait(true);
      blocked_.fetch_sub(1);
    } else {
      sched_yield();
    }
  }
  ++round;
  return share_.load();
}

}  // namespace elbowroom
