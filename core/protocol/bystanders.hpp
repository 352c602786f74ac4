// Threads or processes on cores of their own that touch memory while others exchange messages.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "machine/machine.hpp"
#include "observe/observer.hpp"
#include "protocol/pool.hpp"

namespace elbowroom {

// Between start() and stop() each of them either goes over its array again and again or rests, yielding: it touches no
// memory but a flag then.
class Bystanders {
 public:
  // `bind` binds the calling thread to a core, and throws when it cannot.
  explicit Bystanders(std::function<void(int)> bind);
  ~Bystanders();
  Bystanders(const Bystanders&) = delete;
  Bystanders& operator=(const Bystanders&) = delete;

  // One thread per core, or with `processes` one process, with an array of `bytes` on `node`, first touched by it. Throws
  // as TouchedArray does. A process has no MPI and shares no page with this one besides that of the orders; it dies with
  // this process.
  void use(const std::vector<int>& cores, std::size_t bytes, int node, bool writes, bool processes = false);
  // Threads join the observer; all rest.
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
  struct Orders;
  struct Thread;
  struct Process;
  void order(bool sweeping, std::size_t bytes);
  void fork_all(const std::vector<int>& cores, std::size_t bytes, int node, bool writes);

  std::function<void(int)> bind_;
  std::shared_ptr<Orders> orders_;            // in memory that processes share
  std::vector<std::unique_ptr<Thread>> all_;  // every thread made so far
  std::vector<Thread*> used_;
  std::vector<std::unique_ptr<Process>> processes_;
  bool started_ = false;
};

}  // namespace elbowroom
