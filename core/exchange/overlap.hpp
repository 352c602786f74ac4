// An operation of MPI beside a fixed amount of computation, by all ranks (docs/reference/protocol.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exchange/common_clock.hpp"
#include "exchange/job.hpp"
#include "exchange/operation.hpp"
#include "observe/observer.hpp"
#include "protocol/overlap.hpp"
#include "protocol/pool.hpp"
#include "protocol/request.hpp"
#include "protocol/rounds.hpp"
#include "protocol/worker_cache.hpp"

namespace elbowroom {

// What rank 0 knows when a repetition is over.
struct OverlapReport {
  Visits visits;
  double clock_bound = 0;  // s
  bool holds = true;       // every check of contents and of the computation, on every rank
};

// The thread that calls MPI computes too, on the first computing core; the others have threads of the pool. A progress
// thread is given each operation that was started, and no other thread calls MPI until it is complete.
class OverlapExchange {
 public:
  OverlapExchange(const Job& job, ComputingPool& pool, std::function<void(int)> bind);

  // `workers`: one for each computing core, empty without a computation; `memory` has room for the operation. Collective.
  void use(const Request& request, const std::vector<CachedWorker*>& workers, char* memory);
  // Measures one repetition; the report is rank 0's. Collective.
  OverlapReport run(PhaseObserver& observer);

 private:
  struct Course;  // what rank 0 decides: how much to compute, how often

  Course decide();
  double message_seconds();
  void warm_up(Course& course);
  Visit visit(Kind kind, const Course& course, bool wrong);
  void operate(Visit& visit, const Course* course);
  void finish();
  void compute(Visit& visit, const Course& course, bool testing);
  void be_late() const;
  void start_threads(PhaseObserver& observer);
  void stop_threads();
  void compute_beside(std::size_t thread, PhaseObserver& observer);
  void make_progress(PhaseObserver& observer);
  ClockPair compare_clocks(const ClockPair* before);
  OverlapReport collect(const std::vector<Kind>& order, const std::vector<Visit>& own, const ClockPair& clocks) const;

  const Job& job_;
  ComputingPool& pool_;
  std::function<void(int)> bind_;
  std::optional<CommonClock> clock_;  // made by the first repetition
  Request request_;
  std::vector<Worker*> workers_;
  std::unique_ptr<MpiOperation> operation_;
  std::map<std::string, std::int64_t> items_;  // of each computing core, by point: the same in all repetitions
  std::unique_ptr<BoundThread> progress_;
  std::uint64_t seed_ = 0;
  bool holds_ = true;

  // Between this thread and the others of its rank.
  Rounds rounds_;               // of the computation: items of each
  std::atomic<int> handed_{0};  // to the progress thread: an operation; below 0: the repetition is over
};

}  // namespace elbowroom
