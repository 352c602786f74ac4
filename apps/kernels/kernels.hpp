// The program: its answers to requests, and the one result that people ask for.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "common/serve.hpp"
#include "kernels/algorithm.hpp"
#include "kernels/roof.hpp"

namespace elbowroom::kernels {

class Kernels final : public program::Program {
 public:
  // Checks, allocates, fills, and warms up. Throws RequestError, on all ranks alike. Collective.
  Kernels(const Job& job, const program::Settings& settings);
  ~Kernels() override;

  nlohmann::json facts() const override;
  nlohmann::json answer(const nlohmann::json& request) override;
  // One more whole run (README.md; rank 0's is the answer). With `path`, rank 0 writes the result there, 8 B each, row by
  // row. Throws RequestError when there is no result. Collective.
  nlohmann::json solve(const std::string& path);
  // `rounds` times in turns: the products of a run that only computes, as tasks, and the same calls of the BLAS in plain
  // loops of threads on the same cores; Mflop/s of each round (rank 0's is the answer). Collective.
  nlohmann::json compare(std::size_t rounds);

 private:
  struct Phase;
  void take_cores(const program::Settings& settings);
  void check_memory() const;
  void warm_up();
  void measure_roof();
  void run(Mode mode, std::size_t runs, Phase& phase);
  nlohmann::json phase(const std::string& name, std::size_t index, double window);
  nlohmann::json report(Mode mode, const Phase& phase) const;
  nlohmann::json facts_of(const Checked& checked, const Phase& phase);
  nlohmann::json flags();
  double plain_rate(double flops);
  void write_result(const std::string& path) const;

  const Job& job_;
  Problem problem_;
  Rows rows_;
  program::Place place_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Algorithm> algorithm_;
  Outcome outcome_;                  // of the run that warmed up
  std::array<double, 3> seconds_{};  // of a run, by mode
  std::optional<Roof> roof_;         // of all ranks
  nlohmann::json facts_;             // of the last whole run
};

}  // namespace elbowroom::kernels
