// kernels: conjugate gradients and matrix products, beside whose messages they compute (README.md).
#include <fmt/format.h>

#include <iostream>
#include <string>

#include "common/blas.hpp"
#include "common/command_line.hpp"
#include "common/cores.hpp"
#include "kernels/kernels.hpp"

namespace {

using namespace elbowroom;
using namespace elbowroom::kernels;

struct Options {
  std::string task = "cg";
  std::int64_t order = 2000;
  std::int64_t block = 250;
  std::int64_t iterations = 0;
  double shift = 0;
  int threads = 1;
  std::string result;
  std::size_t rounds = 0;
  bool json = false;
};

program::Settings settings_for(const Job& job, const Options& options) {
  program::Settings settings = program::own_settings(job, static_cast<std::size_t>(options.threads));
  settings.program = {
      {"task", options.task}, {"order", options.order}, {"block", options.block}, {"shift", options.shift}};
  settings.program["iterations"] = options.iterations > 0 ? options.iterations : options.task == "gemm" ? 1 : 500;
  return settings;
}

void print_line(const nlohmann::json& report) {
  const nlohmann::json& facts = report.at("facts");
  const auto number = [](const nlohmann::json& object, const char* key) { return object.at(key).get<double>(); };
  fmt::print(
      "{} of order {} in blocks of {}, {} rank(s) x {} thread(s): {:.4g} ms, {:.3g} Gflop/s, {} iteration(s), "
      "residual {:.2g}, error {:.2g}, sends {}{}\n",
      report.at("task").get<std::string>(), facts.at("order").get<std::size_t>(), facts.at("block").get<std::size_t>(),
      report.at("ranks").get<int>(), report.at("threads").get<std::size_t>(), number(report, "time_us") * 1e-3,
      number(report, "Mflop_s") * 1e-3, facts.at("iterations").get<std::size_t>(), number(facts, "residual"),
      number(facts, "relative_error"),
      report.at("send_MB_s").is_null() ? "none" : fmt::format("{:.4g} MB/s", number(report, "send_MB_s")),
      report.at("flags").empty() ? "" : " " + report.at("flags").dump());
}

int solve(const Job& job, const Options& options) {
  return program::answered(job, [&] {
    Kernels kernels(job, settings_for(job, options));
    if (options.rounds > 0) {
      const nlohmann::json compared = kernels.compare(options.rounds);
      if (job.rank() == 0) {
        std::cout << compared.dump() << std::endl;
      }
      return 0;
    }
    const nlohmann::json report = kernels.solve(options.result);
    if (job.rank() == 0) {
      options.json ? void(std::cout << report.dump() << std::endl) : print_line(report);
    }
    return report.at("valid").get<bool>() ? 0 : 1;
  });
}

void add_solve(CLI::App& command, Options& options) {
  command.add_option("--task", options.task, "cg, cg-sparse or gemm")->capture_default_str();
  command.add_option("--order", options.order, "rows of the matrix")->capture_default_str();
  command.add_option("--block", options.block, "rows of a block; divides the order")->capture_default_str();
  command.add_option("--iterations", options.iterations, "of CG at most (500), or products (1)");
  command.add_option("--shift", options.shift, "taken off the diagonal of a CG's matrix");
  command.add_option("--threads", options.threads, "computing threads of each rank")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--result", options.result, "file for the result: 8 B each, row by row");
  command.add_option(
      "--compare", options.rounds,
      "instead: so many rounds of its products as tasks, and of the same calls of OpenBLAS in plain loops");
  command.add_flag("--json", options.json, "one JSON object");
}

}  // namespace

int main(int argc, char** argv) {
  program::choose_blas_kernels(argv);
  program::CommandLine line(
      fmt::format("conjugate gradients and matrix products in blocks on MPI ranks ({})", Engine::kName), "MPI ranks",
      "program, cores, nodes");
  Options options;
  auto* solving = line.app.add_subcommand("solve", "one solution or product, checked");
  add_solve(*solving, options);
  if (const auto code = line.parse(argc, argv)) return *code;
  return program::with_ranks(
      fmt::format("kernels-{}", Engine::kName), argc, argv, Engine::kThreadLevel,
      [&](const Job& job) { return solving->parsed() ? solve(job, options) : line.serve<Kernels>(job); });
}
