// The program: its answers to requests, and the one factorization that people ask for.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/phase.hpp"
#include "common/serve.hpp"
#include "common/sharing.hpp"
#include "elbowroom/broadcast.h"
#include "elbowroom/taskflow.h"
#include "factorizations/engine.hpp"
#include "factorizations/matrix.hpp"

namespace elbowroom::factorizations {

class Factorizations final : public program::Program {
 public:
  // Checks, allocates, and factorizes once. Throws RequestError, on all ranks alike. Collective.
  Factorizations(const Job& job, const program::Settings& settings);
  ~Factorizations() override;

  nlohmann::json facts() const override;
  nlohmann::json answer(const nlohmann::json& request) override;
  // One more factorization (README.md; rank 0's is the answer). Collective.
  nlohmann::json solve();

 private:
  struct Run;
  struct Sums;
  struct Work;
  void check_memory() const;
  void open_broadcasts();
  Run run(program::Mode mode);
  void submit(elbow_taskflow* flow, program::Mode mode);
  void register_data(elbow_taskflow* flow, program::Mode mode);
  double* replica(Data data);
  static void compute_step(void* const* tiles, const void* argument);
  nlohmann::json phase(const std::string& name, std::size_t index, double window);
  nlohmann::json report(program::Mode mode, const std::vector<Run>& runs) const;
  nlohmann::json facts_of(const Run& run);
  nlohmann::json flags();

  const Job& job_;
  Layout layout_;
  std::string tree_;
  elbow_broadcast_way way_{};
  elbow_taskflow_settings flow_{};
  std::string task_;
  program::Place place_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Matrix> matrix_;
  std::vector<std::unique_ptr<double[]>> replicas_;  // of other ranks' tiles, for phases without messages
  elbow_broadcast* broadcast_ = nullptr;
  elbow_broadcast* alone_ = nullptr;  // reaches nobody
  std::array<double, 3> seconds_{};   // of a run, by mode
  std::atomic<std::int64_t> busy_ns_ = 0;
  std::atomic<bool> failed_ = false;
  std::string failure_;   // why there is no factorization; empty where there is one
  nlohmann::json facts_;  // of the last whole run
};

}  // namespace elbowroom::factorizations
