// One rank's part in a communication phase: batches announced by rank 0, lanes run by communication threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "exchange/job.hpp"
#include "exchange/pattern.hpp"
#include "observe/observer.hpp"
#include "protocol/chunk_log.hpp"
#include "protocol/pool.hpp"

namespace elbowroom {

struct Batch {
  std::int64_t start;  // ns
  std::int64_t end;    // ns
  std::int64_t iterations;
};

struct ExchangeReport {
  std::vector<Batch> batches;   // the measured ones
  std::vector<DueMessage> due;  // on rank 0, where messages have a period: all of the one measured batch
  Window window{};              // from the first measured batch to the end of the last
  bool steady = false;
  bool holds = true;  // every check of contents succeeded
};

// Before each batch rank 0 sends a header (how many iterations, which seed) and waits for an answer: all ranks stand
// ready when the clock is read, none needs a barrier, and no times of two ranks are ever subtracted.
class Exchange {
 public:
  Exchange(const Job& job, std::function<void(int)> bind);

  // `lanes[0]` is run by the calling thread, lanes[i] by a thread bound to cores[i].
  void use(std::vector<Lane> lanes, const std::vector<int>& cores, bool corrupt);

  // All communication threads join the observer.
  ExchangeReport lead(const Request& request, double minimum_ns, PhaseObserver& observer);  // rank 0
  ExchangeReport follow(PhaseObserver& observer);                                           // the others

 private:
  struct Header;
  bool announce(const Header& header);
  bool run(const Header& header, Batch& batch);
  bool warm_up(const Request& request, double target_ns);
  bool batch(std::int64_t iterations);
  bool whole_message();
  void measure(const Request& request, ExchangeReport& report);
  void measure_due(const Request& request, ExchangeReport& report);
  void start_lanes(PhaseObserver& observer);
  void finish_lanes();
  bool on_lanes(const std::function<bool(std::size_t)>& task);
  void lane_loop(std::size_t lane);

  const Job& job_;
  std::function<void(int)> bind_;
  std::vector<Lane> lanes_;
  std::vector<std::unique_ptr<BoundThread>> threads_;  // every one made so far
  std::vector<BoundThread*> used_;                     // of lanes 1 to k - 1
  bool corrupt_ = false;
  bool checked_whole_ = false;
  std::uint64_t seed_ = 0;
  std::int64_t iterations_ = 1;  // of a batch, as calibrated last
  std::vector<Batch> done_;      // all batches of this phase
  double period_ns_ = 0;         // of the messages in due_
  std::vector<DueMessage> due_;  // empty: the next batch runs as fast as it can

  const std::function<bool(std::size_t)>* task_ = nullptr;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<std::size_t> pending_{0};
  std::atomic<bool> failed_{false};
  PhaseObserver* observer_ = nullptr;
};

}  // namespace elbowroom
