// runtime: messages through a task runtime and through MPI (README.md).
#include <CLI/CLI.hpp>
#include <string>

#include "common/serve.hpp"
#include "exchange/job.hpp"
#include "runtime/runtime.hpp"

namespace {

using namespace elbowroom;

// StarPU's communication thread and this one both call MPI; both ways of a message are measured at this level.
int measure(int argc, char** argv, const std::string& config) {
  return program::with_ranks("runtime", argc, argv, "multiple", [&](const Job& job) {
    return program::serve(job, config, [](const Job& all, const program::Settings& settings) {
      return std::make_unique<runtime::Runtime>(all, settings);
    });
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("messages through StarPU-MPI and through MPI, in the same processes, threads and memory");
  app.set_version_flag("--version", ELBOWROOM_VERSION);
  app.require_subcommand(1);
  std::string config;
  std::string threads;
  auto* measuring = app.add_subcommand("measure", "answers requests on stdin; start it as two MPI ranks");
  measuring->add_option("--config", config, "JSON file: task, cores, nodes")->required();
  measuring->add_option("--threads", threads, "accepted as by the probe: the level is multiple")
      ->check(CLI::IsMember({"multiple"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return measure(argc, argv, config);
}
