// One rank's side of a measurement: its threads, its memory, and what it has to say about a phase.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "exchange/exchange.hpp"
#include "exchange/extraneous.hpp"
#include "exchange/job.hpp"
#include "exchange/overlap.hpp"
#include "machine/machine.hpp"
#include "observe/observer.hpp"
#include "observe/tracing.hpp"
#include "protocol/pool.hpp"
#include "protocol/request.hpp"
#include "protocol/worker_cache.hpp"

namespace elbowroom {

// What a phase is called in a trace.
const elbow_trace_type* traced_phase(Phase phase);

class Station {
 public:
  explicit Station(const Job& job);

  // Checks the request against this host and stops there; throws RequestError.
  void check(const Request& request) const;
  // Binds, allocates and touches; throws RequestError or std::runtime_error.
  void prepare(const Request& request);

  bool computing() const { return computing_; }
  bool communicating() const { return communicating_; }
  const Placement& placement() const { return placement_; }

  void begin_phase();
  void start_computing();
  // Sleeps until every computing thread is steady, or the limit passed and all are at least warm. True when steady.
  bool wait_until_computing() const;
  std::int64_t steady_since() const { return pool_.steady_since(); }
  std::int64_t warm_since() const { return pool_.warm_since(); }
  void stop_computing();
  void lead_exchange();
  void follow_exchange();
  const ExchangeReport& exchanged() const { return exchanged_; }
  ExtraneousReport lead_extraneous() { return extraneous_.lead(*observer_); }
  void follow_extraneous() { extraneous_.follow(*observer_); }
  OverlapReport run_overlap() { return overlap_.run(*observer_); }
  void end_phase();

  // "comp" and "comm" of the phase that ended, and what they flag. `window` is this rank's own.
  nlohmann::json computed(const Window& window, std::set<std::string>& flags) const;
  nlohmann::json communicated(std::set<std::string>& flags) const;
  nlohmann::json observed(std::set<std::string>& flags) const;
  // "pages" of the request, and wrong_node in `flags`; {"comp": …, "comm": …}.
  nlohmann::json pages(std::set<std::string>& flags) const;
  // Flags of the request: working_set_small, region_capped.
  std::set<std::string> request_flags() const;

 private:
  Site site(const Placement& placement) const;
  void prepare_computation();
  void prepare_communication();
  char* message_memory(std::size_t bytes);
  std::size_t message_bytes() const;
  void check_mpi(const Request& request) const;
  std::vector<int> threads_cores() const;
  std::vector<int> busy_cores() const;

  const Job& job_;
  const Machine& machine_;
  ComputingPool pool_;
  WorkerCache cache_;
  Exchange exchange_;
  ExtraneousExchange extraneous_;
  OverlapExchange overlap_;
  std::vector<Arena> message_arenas_;  // at most one for each node

  Request request_;
  Placement placement_;
  bool computing_ = false;
  bool communicating_ = false;
  MessageLayout layout_;
  std::vector<CachedWorker*> workers_;
  std::unique_ptr<PhaseObserver> observer_;
  std::int64_t phase_start_ = 0;
  std::vector<ComputingReport> reports_;
  ExchangeReport exchanged_;
};

}  // namespace elbowroom
