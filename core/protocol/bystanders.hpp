// Threads on cores of their own that touch memory while others exchange messages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "machine/machine.hpp"
#include "observe/observer.hpp"
#include "protocol/pool.hpp"

namespace elbowroom {

// Between start() and stop() each thread either goes over its array again and again or rests, yielding: it touches no
// memory but a flag then.
class Bystanders {
 public:
  // `bind` binds the calling thread to a core, and throws when it cannot.
  explicit Bystanders(std::function<void(int)> bind);
  ~Bystanders();
  Bystanders(const Bystanders&) = delete;
  Bystanders& operator=(const Bystanders&) = delete;

  // One thread per core with an array of `bytes` on `node`, first touched by it. Throws as TouchedArray does.
  void use(const std::vector<int>& cores, std::size_t bytes, int node, bool writes);
  // The threads join the observer, and rest.
  void start(PhaseObserver& observer);
  // Returns when each thread has gone over the first `bytes` of its array once, and goes on.
  void sweep(std::size_t bytes);
  // Returns when all rest. False when they did not go over their arrays until now (docs/design/method.md, rule 1).
  bool rest();
  // Ends the threads' work. False when one read or left something in its array that was not written.
  bool stop();

  std::vector<PageReport> pages() const;
  std::size_t bytes_on(int node) const;

 private:
  struct Slot;
  void order(bool sweeping, std::size_t bytes);

  std::function<void(int)> bind_;
  std::vector<std::unique_ptr<Slot>> all_;  // every thread made so far
  std::vector<Slot*> used_;
  bool started_ = false;
  bool sweeping_ = false;                     // what is ordered, as
  std::size_t bytes_ = 0;                     // is how far a sweep goes
  std::atomic<std::uint64_t> generation_{0};  // of orders; what it orders is written before
  std::atomic<bool> quit_{false};
};

}  // namespace elbowroom
