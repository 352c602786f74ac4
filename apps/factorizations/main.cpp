// factorizations: Cholesky's and QR's of tiled matrices, as task graphs whose broadcasts travel over trees (README.md).
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <string>

#include "common/blas.hpp"
#include "common/command_line.hpp"
#include "common/cores.hpp"
#include "factorizations/factorizations.hpp"
#include "factorizations/steps.hpp"

namespace {

using namespace elbowroom;
using namespace elbowroom::factorizations;

constexpr int kRepetitions = 15;

struct Options {
  std::string task = "cholesky";
  int tiles = 8;
  int columns = 0;
  int block = 256;
  std::string grid;
  std::string tree = "binomial";
  std::size_t segment = 0;
  std::size_t window = 0;
  bool no_broadcasts = false;
  bool wait_released = false;
  bool send_at_once = false;
  int threads = 1;
  bool json = false;
};

program::Settings settings_for(const Job& job, const Options& options) {
  program::Settings settings = program::own_settings(job, static_cast<std::size_t>(options.threads));
  int rows = 1;
  int columns = job.size();
  char rest = 0;
  if (!options.grid.empty() && std::sscanf(options.grid.c_str(), "%dx%d%c", &rows, &columns, &rest) != 2) {
    throw RequestError("grid", options.grid, "is not rows x columns", "for instance 2x2");
  }
  settings.program = {{"task", options.task},
                      {"tiles", options.tiles},
                      {"columns", options.columns > 0 ? options.columns : options.tiles},
                      {"block", options.block},
                      {"grid_rows", rows},
                      {"grid_columns", columns},
                      {"tree", options.tree},
                      {"segment", options.segment},
                      {"window", options.window},
                      {"broadcasts", !options.no_broadcasts},
                      {"early", !options.wait_released},
                      {"hold", !options.send_at_once}};
  return settings;
}

void print_line(const nlohmann::json& report) {
  const nlohmann::json& facts = report.at("facts");
  const auto number = [&](const char* key) { return facts.at(key).get<double>(); };
  fmt::print(
      "{} of order {:.0f} in tiles of {:.0f}, {} rank(s) x {} thread(s): {:.3g} Gflop/s, residual {:.2g}, {:.0f} "
      "broadcast(s){}, {:.0f} message(s) without them{}\n",
      report.at("task").get<std::string>(), number("order"), number("block"), report.at("ranks").get<int>(),
      report.at("threads").get<std::size_t>(), number("Mflop_s") * 1e-3, number("residual"), number("broadcasts"),
      facts.contains("complete_share") ? fmt::format(", {:.1f} % complete", 100 * number("complete_share")) : "",
      number("messages"), report.at("flags").empty() ? "" : " " + report.at("flags").dump());
}

int solve(const Job& job, const Options& options) {
  return program::answered(job, [&] {
    Factorizations factorizations(job, settings_for(job, options));
    const nlohmann::json report = factorizations.solve();
    if (job.rank() == 0) options.json ? void(std::cout << report.dump() << std::endl) : print_line(report);
    return report.at("valid").get<bool>() ? 0 : 1;
  });
}

void add_solve(CLI::App& command, Options& options) {
  command.add_option("--task", options.task, "cholesky or qr")->capture_default_str();
  command.add_option("--tiles", options.tiles, "rows of tiles")->capture_default_str();
  command.add_option("--columns", options.columns, "columns of tiles of QR's (default: as many)");
  command.add_option("--block", options.block, "rows of a tile")->capture_default_str();
  command.add_option("--grid", options.grid, "processes in rows x columns (default: one row)");
  command.add_option("--tree", options.tree, "of the broadcasts")->capture_default_str();
  command.add_option("--segment", options.segment, "bytes that ranks forward one by one (default: all at once)");
  command.add_option("--window", options.window, "tasks of a rank that are under way (default: no limit)");
  command.add_flag("--no-broadcasts", options.no_broadcasts, "each recipient gets a message of its own");
  command.add_flag("--wait-released", options.wait_released, "readers wait until their data are forwarded");
  command.add_flag("--send-at-once", options.send_at_once, "ready data do not wait for further readers (StarPU)");
  command.add_option("--threads", options.threads, "computing threads of each rank")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_flag("--json", options.json, "one JSON object");
}

// Of one rank, in the order of their names; rank 0 prints them.
int print_times(const Job& job, const Options& options) {
  program::one_thread_each();
  const auto block = static_cast<std::size_t>(options.block);
  const auto times = time_steps(block, std::min<std::size_t>(block, kInnerBlock), kRepetitions);
  nlohmann::json record = {
      {"schema", "elbowroom/step-times"}, {"version", 1}, {"block", block}, {"blas", program::blas()}};
  for (std::size_t step = 0; step < times.size(); ++step) {
    record["seconds"][taskflow::name_of(static_cast<taskflow::Step>(step))] = times[step];
  }
  if (job.rank() == 0) std::cout << record.dump() << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  program::choose_blas_kernels(argv);
  program::CommandLine line(fmt::format("Cholesky's and QR's factorization in tiles on MPI ranks ({})", Engine::kName),
                            "MPI ranks", "program, cores, nodes");
  line.accept_threads("multiple");
  Options options;
  auto* solving = line.app.add_subcommand("solve", "one factorization, checked");
  add_solve(*solving, options);
  auto* timing = line.app.add_subcommand("times", "how long each kernel takes on one core");
  timing->add_option("--block", options.block, "rows of a tile")
      ->check(CLI::Range(1, kMostBlock))
      ->capture_default_str();
  if (const auto code = line.parse(argc, argv)) return *code;
  return program::with_ranks("factorizations", argc, argv, "multiple", [&](const Job& job) {
    if (*solving) return solve(job, options);
    if (*timing) return print_times(job, options);
    return line.serve<Factorizations>(job);
  });
}
