// Time steps: who computes, who communicates, and in which order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/gate.hpp"
#include "diffusion/halo.hpp"
#include "diffusion/variant.hpp"
#include "diffusion/work.hpp"
#include "protocol/pool.hpp"

namespace elbowroom::diffusion {

using program::Gate;

using Field = std::function<double*(std::int64_t)>;  // values after a step

// The threads of one rank. The thread that makes a Crew is its first communication thread.
class Crew {
 public:
  // One computing thread for each of `comp_cores`, communication threads for `comm_cores`. Those that share their core with
  // another thread (of any rank) must not spin.
  Crew(const std::vector<int>& comp_cores, std::vector<int> comm_cores, bool comp_shared, bool comm_shared,
       const std::function<void(int)>& bind);

  std::size_t computing() const { return computing_.size(); }
  // Runs `task(thread)` on all computing threads at once, and returns when all are done.
  void each(const std::function<void(std::size_t)>& task);
  // Runs the steps; steps are counted from 1, field(step) is what a step exchanges. Collective.
  StepTimes run(const Steps& steps, Work& work, const Field& field, Halo& halo, MPI_Comm comm);
  // Looks at which core each thread is; after all steps, too.
  void look();
  // Whether one was seen on another core than its own.
  bool migrated() const;

 private:
  void compute(std::size_t thread, const Steps& steps, Work& work);
  void communicate(int thread, std::int64_t step, const Steps& steps, double* values, Halo& halo);
  void assist(int thread, const Steps& steps, const Field& field, Halo& halo);
  void begin(const Steps& steps);
  void lead(const Steps& steps, const Field& field, Halo& halo, MPI_Comm comm);
  void look_where(std::size_t thread, int core);
  StepTimes times(const Steps& steps) const;

  std::vector<std::unique_ptr<BoundThread>> computing_;
  std::vector<std::unique_ptr<BoundThread>> communicating_;  // but the first
  std::vector<int> comm_cores_;
  int comp_spins_;
  int comm_spins_;
  Gate go_, separated_, computed_, exchanging_, exchanged_;
  std::vector<std::vector<std::int64_t>> computed_at_;   // by thread: begin, separator done, interior done of each step
  std::vector<std::vector<std::int64_t>> exchanged_at_;  // by thread: begin and end of each step
  std::vector<std::int64_t> ended_at_;                   // of the steps, the begin of the first in front
  std::vector<char> strayed_;                            // by thread, computing ones first
};

}  // namespace elbowroom::diffusion
