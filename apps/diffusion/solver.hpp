// One rank of the solver: its part of the mesh, its threads, its memory. All functions but those marked are collective.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "common/sharing.hpp"
#include "diffusion/block.hpp"
#include "diffusion/config.hpp"
#include "diffusion/halo.hpp"
#include "diffusion/steps.hpp"
#include "diffusion/work.hpp"
#include "exchange/job.hpp"

namespace elbowroom::diffusion {

using program::Seat;
using program::Sharing;

class Solver {
 public:
  // Checks, partitions on rank 0, allocates and fills. Throws RequestError, the same on all ranks.
  Solver(const Job& job, const Config& config);
  ~Solver();

  // What is computed, by whom and where (rank 0; null elsewhere).
  nlohmann::json hello();
  // Throws RequestError when the steps cannot be run; not collective.
  void check(const Steps& steps) const;
  // Starts from the known solution, runs the steps, validates, and tells (rank 0; null elsewhere).
  nlohmann::json run(const Steps& steps);
  // Runs to `time` and tells the error against the known solution (rank 0; null elsewhere). Throws RequestError.
  nlohmann::json solve(double time);

 private:
  void take_cores();
  void partition_cells();
  void build(double dt);
  void fill(double dt);
  StepTimes go(const Steps& steps);
  bool valid(const Steps& steps);
  bool conserved(std::int64_t step) const;
  bool ghosts_hold(std::int64_t step);
  nlohmann::json flags_of(bool holds, bool brief) const;
  double step_bytes() const;     // of this rank
  nlohmann::json facts() const;  // of this rank; not collective

  const Job& job_;
  const Config config_;
  const Mesh mesh_;
  const Medium medium_;
  double dt_ = 0;
  double initial_ = 0;  // integral over the box
  Seat seat_;
  Sharing sharing_;
  int comp_node_ = 0;
  int comm_node_ = 0;
  std::vector<std::int32_t> part_of_;  // rank of each cell; while building only
  std::unique_ptr<Block> block_;
  std::unique_ptr<Halo> halo_;
  std::unique_ptr<Crew> crew_;
  std::unique_ptr<Diffusion> diffusion_;
  std::unique_ptr<Triad> triad_;  // when it is first asked for
};

}  // namespace elbowroom::diffusion
