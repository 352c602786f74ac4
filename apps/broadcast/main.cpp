// forwarder: what forwarding broadcasts costs the computing cores of a rank inside the tree (README.md).
#include <CLI/CLI.hpp>
#include <string>

#include "broadcast/forwarder.hpp"
#include "common/blas.hpp"
#include "common/serve.hpp"
#include "exchange/job.hpp"

namespace {

using namespace elbowroom;

int measure(int argc, char** argv, const std::string& config) {
  return program::with_ranks("forwarder", argc, argv, "funneled", [&](const Job& job) {
    return program::serve(job, config, [](const Job& all, const program::Settings& settings) {
      return std::make_unique<forwarding::Forwarder>(all, settings);
    });
  });
}

}  // namespace

int main(int argc, char** argv) {
  program::choose_blas_kernels(argv);
  CLI::App app("broadcasts over a tree, and a kernel beside them on a rank that forwards");
  app.set_version_flag("--version", ELBOWROOM_VERSION);
  app.require_subcommand(1);
  std::string config;
  std::string threads;
  auto* measuring = app.add_subcommand("measure", "answers requests on stdin; start it as three MPI ranks or more");
  measuring->add_option("--config", config, "JSON file: tree, kernel, cores, nodes")->required();
  measuring->add_option("--threads", threads, "accepted as by the probe: the level is funneled")
      ->check(CLI::IsMember({"funneled"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return measure(argc, argv, config);
}
