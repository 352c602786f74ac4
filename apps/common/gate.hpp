// Ways of waiting: for messages, and for a count that other threads raise.
#pragma once

#include <atomic>
#include <cstdint>

namespace elbowroom::program {

// How a thread waits for messages, by what else runs on its core: nothing; other communication threads, to which it
// yields; computing threads, for which it sleeps.
enum class Waiting { spin, yield, sleep };

class Gate {
 public:
  void reset() { count_.store(0, std::memory_order_relaxed); }
  void raise() {
    count_.fetch_add(1, std::memory_order_release);
    count_.notify_all();
  }
  // Returns once the count is `count` or more. Looks `spins` times, then sleeps in the kernel: a thread that has its core to
  // itself goes on at once after short waits, one that shares it (`spins` 0) leaves it to the other.
  void wait_for(std::uint32_t count, int spins) const;

 private:
  std::atomic<std::uint32_t> count_{0};
};

// One look in a loop of waiting, cheap for the other thread of the core.
void relax();

}  // namespace elbowroom::program
