// One rank of the solver: its part of the mesh, its threads, its memory. All functions but those marked are collective.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "common/serve.hpp"
#include "common/sharing.hpp"
#include "diffusion/block.hpp"
#include "diffusion/config.hpp"
#include "diffusion/halo.hpp"
#include "diffusion/steps.hpp"
#include "diffusion/work.hpp"
#include "exchange/job.hpp"

namespace elbowroom::diffusion {

class Solver final : public program::Program {
 public:
  // Checks, partitions on rank 0, allocates and fills. Throws RequestError, the same on all ranks.
  Solver(const Job& job, const program::Settings& settings);
  ~Solver() override;

  // What is computed, by whom and where.
  nlohmann::json facts() const override;
  // Starts from the known solution, runs the steps, and validates.
  nlohmann::json answer(const nlohmann::json& request) override;
  // Runs to `time` and tells the error against the known solution (rank 0; null elsewhere). Throws RequestError.
  nlohmann::json solve(double time);

 private:
  void check_ranks(const program::Settings& settings) const;
  void partition_cells();
  void build(double dt);
  void fill(double dt);
  void check(const Steps& steps) const;
  void fill_triad();
  StepTimes go(const Steps& steps);
  bool valid(const Steps& steps);
  bool conserved(std::int64_t step) const;
  bool ghosts_hold(std::int64_t step);
  nlohmann::json flags_of(bool holds, bool brief) const;
  double step_bytes() const;          // of this rank
  nlohmann::json own_part() const;    // not collective
  nlohmann::json step_facts() const;  // not collective

  const Job& job_;
  const Config config_;
  const Mesh mesh_;
  const Medium medium_;
  double dt_ = 0;
  double initial_ = 0;  // integral over the box
  program::Place place_;
  int comm_threads_ = 1;               // the most that all ranks have
  std::vector<std::int32_t> part_of_;  // rank of each cell; while building only
  std::unique_ptr<Block> block_;
  std::unique_ptr<Halo> halo_;
  std::unique_ptr<Crew> crew_;
  std::unique_ptr<Diffusion> diffusion_;
  std::unique_ptr<Triad> triad_;       // when it is first asked for
  std::vector<nlohmann::json> parts_;  // of all ranks
};

}  // namespace elbowroom::diffusion
