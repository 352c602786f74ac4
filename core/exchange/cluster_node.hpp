// What one node of a cluster measures: kernels alone, messages with a partner alone and beside TRIAD, and its noise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "exchange/job.hpp"
#include "exchange/pair_exchange.hpp"
#include "machine/machine.hpp"
#include "protocol/pool.hpp"
#include "protocol/worker_cache.hpp"

namespace elbowroom {

// A node computes on all allowed cores but the first, which communicates; one that has a single core does both there.
class ClusterNode {
 public:
  // `working_set`: bytes of TRIAD's arrays on the whole node; 0: four last-level caches.
  ClusterNode(const Job& job, std::size_t working_set);

  // Facts by name, as texts; those that cannot be read are absent.
  static nlohmann::json facts();
  // Names of what the functions below return, in their order.
  static nlohmann::json quantities();

  // Each window lasts `seconds`. A value that could not be measured is null.
  nlohmann::json alone(double seconds);
  // Messages of `size` bytes with another rank of the job: values of what this node sends. Both partners call it.
  nlohmann::json pair(int partner, std::size_t size, double seconds);
  // Equal pieces of work between `barriers`, and the mean time of day (s) at which they ended. Collective.
  nlohmann::json train(int barriers);

 private:
  struct Computed;
  // Counters that only grow, read at one time.
  struct Taken {
    std::int64_t time = 0;        // ns
    std::optional<double> steal;  // s, of all processing units of the allowed cores
    bool group_unknown = false;
    std::uint64_t periods = 0;  // as of Cgroup
    std::uint64_t throttled = 0;
  };
  std::vector<CachedWorker*> workers(const char* kernel, std::size_t bytes);
  void start(const std::vector<CachedWorker*>& workers, Window& window);
  Computed stop(const char* kernel, Window window);
  Computed compute(const char* kernel, std::size_t bytes, double seconds);
  Taken taken() const;
  double latency(double seconds);
  double message_rate(double seconds) const;

  const Job& job_;
  std::vector<CoreInfo> cores_;  // that compute
  std::vector<int> units_;       // processing units of all allowed cores
  Taken taken_;                  // when this node measured alone last
  int comm_core_ = 0;
  int comm_node_ = 0;
  std::size_t triad_bytes_ = 0;  // of each core
  std::size_t cache_bytes_ = 0;
  ComputingPool pool_;
  WorkerCache cache_;
  Arena links_;
  Arena messages_;
  std::uint64_t line_ = 0;
  std::unique_ptr<Worker> piece_;  // of work between barriers
  std::uint64_t piece_items_ = 0;
};

}  // namespace elbowroom
