// gpu-streams: copies and kernels of an accelerator beside each other, computing cores and MPI messages, as the program of
// a run (docs/reference/gpu-bench.md).
//   gpu-streams facts [FOLDER ...]           what there is, as gpu-bench prints it; MPI is not started
//   gpu-streams measure --config FILE        answers requests on standard input; one rank, or two where there are messages
#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "common/serve.hpp"
#include "facts.hpp"
#include "streams.hpp"

namespace {

using namespace elbowroom;

int measure(int argc, char** argv, const std::string& config, const std::vector<std::string>& libraries) {
  return program::with_ranks("gpu-streams", argc, argv, "funneled", [&](const Job& job) {
    return program::serve(job, config, [&](const Job& all, const program::Settings& settings) {
      return std::make_unique<gpu_bench::Streams>(all, settings, libraries);
    });
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("copies and kernels of an accelerator beside each other, computing cores and messages");
  app.set_version_flag("--version", ELBOWROOM_VERSION);
  app.require_subcommand(1);
  std::string config;
  std::vector<std::string> libraries;
  auto* facts = app.add_subcommand("facts", "prints what there is as JSON");
  facts->add_option("folders", libraries, "with NVRTC and cuBLASLt");
  auto* measuring = app.add_subcommand("measure", "answers requests on stdin; start it as one or two MPI ranks");
  measuring->add_option("--config", config, "JSON file: program and ranks")->required();
  measuring->add_option("--library", libraries, "folder with NVRTC and cuBLASLt; may be repeated");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (*facts) {
    std::cout << gpu_bench::facts(0, libraries).dump() << std::endl;
    return 0;
  }
  return measure(argc, argv, config, libraries);
}
