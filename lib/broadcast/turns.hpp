// A mutex that serves its callers in the order in which they came. std::mutex lets a thread that locks again at once keep the
// others out for long.
#pragma once

#include <atomic>
#include <cstdint>

namespace elbowroom::broadcast {

class Turns {
 public:
  void lock() {
    const std::uint32_t mine = next_.fetch_add(1);
    for (std::uint32_t now = serving_; now != mine; now = serving_) serving_.wait(now);
  }
  void unlock() {
    serving_.fetch_add(1);
    serving_.notify_all();
  }
  // Threads that hold it or wait for it.
  std::uint32_t callers() const { return next_ - serving_; }

 private:
  std::atomic<std::uint32_t> next_ = 0;
  std::atomic<std::uint32_t> serving_ = 0;
};

}  // namespace elbowroom::broadcast
