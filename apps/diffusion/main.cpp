// diffusion: a real application beside which elbowroom's models are held (README.md).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "common/serve.hpp"
#include "diffusion/mesh.hpp"
#include "diffusion/solver.hpp"
#include "diffusion/split.hpp"
#include "diffusion/volumes.hpp"
#include "exchange/job.hpp"

namespace {

using namespace elbowroom;
using namespace elbowroom::diffusion;

struct Options {
  std::string config;
  std::string threads = "funneled";
  double time = 0;
  std::int64_t cells = 0;
  int resolution = 0;
  std::vector<int> parts;
  std::string partitioner = "metis";
  bool each = false;
  bool json = false;
  SplitRequest split;
};

int solve(const Job& job, const Options& options) {
  return program::with_settings(job, options.config, [&](const program::Settings& settings) {
    const nlohmann::json solution = Solver(job, settings).solve(options.time);
    if (job.rank() == 0) {
      std::cout << solution.dump() << std::endl;
    }
  });
}

int measure(const Job& job, const Options& options) {
  return program::serve(job, options.config, [](const Job& all, const program::Settings& settings) {
    return std::make_unique<Solver>(all, settings);
  });
}

void print_table(const nlohmann::json& all) {
  fmt::print("{:>6} {:>12} {:>9} {:>12} {:>12} {:>12} {:>12} {:>9}\n", "parts", "cells", "imbalance", "total MB",
             "average MB", "largest MB", "message MB", "messages");
  for (const auto& one : all.at("volumes")) {
    const auto megabytes = [&](const char* key) { return one.at(key).get<double>() * 1e-6; };
    fmt::print("{:>6} {:>12} {:>9.3f} {:>12.4g} {:>12.4g} {:>12.4g} {:>12.4g} {:>9.1f}\n", one.at("parts").get<int>(),
               one.at("cells").get<std::int64_t>(), one.at("imbalance").get<double>(), megabytes("sent_total"),
               megabytes("sent_average"), megabytes("sent_largest"), megabytes("message_largest"),
               one.at("messages_average").get<double>());
  }
}

Mesh mesh_of(const Options& options) {
  if ((options.cells == 0) == (options.resolution == 0)) {
    throw RequestError("resolution", "", "the size of the mesh is given once, as --cells or as --resolution",
                       "give one of the two");
  }
  return options.cells != 0 ? Mesh::nearest(options.cells)
                            : Mesh({options.resolution, options.resolution, options.resolution});
}

int print_split(const Options& options) {
  std::cout << run_split(mesh_of(options), options.split).dump() << std::endl;
  return 0;
}

int print_volumes(const Options& options) {
  const Mesh mesh = mesh_of(options);
  nlohmann::json all = {{"cells", mesh.cells()}, {"partitioner", options.partitioner}};
  const Partitioner partitioner = partitioner_of(options.partitioner);
  for (const int parts : options.parts) {
    const auto part = partition(mesh, parts, partitioner);
    all["volumes"].push_back(volume_record(rank_volumes(mesh, part, parts), options.each));
  }
  if (options.json) {
    std::cout << all.dump() << std::endl;
  } else {
    print_table(all);
  }
  return 0;
}

void add_ranks(CLI::App& command, Options& options) {
  command.add_option("--config", options.config, "JSON file: mesh, material, cores")->required();
  command.add_option("--threads", options.threads, "thread level of MPI; multiple: several communication threads")
      ->check(CLI::IsMember({"funneled", "multiple"}))
      ->capture_default_str();
}

void add_mesh(CLI::App& command, Options& options) {
  command.add_option("--cells", options.cells, "about so many cells");
  command.add_option("--resolution", options.resolution, "cubes each way");
}

void add_split(CLI::App& command, Options& options) {
  add_mesh(command, options);
  command.add_option("--w", options.split.w, "share of the cells on the accelerator")->capture_default_str();
  command.add_option("--steps", options.split.steps, "steps, each timed")->capture_default_str();
  command.add_option("--cores", options.split.cores, "cores that compute, as 1,2,3")->required()->delimiter(',');
  command.add_option("--device", options.split.device, "number of the accelerator")->capture_default_str();
  command.add_option("--libraries", options.split.libraries, "folders of NVRTC")->delimiter(',');
}

void add_volumes(CLI::App& command, Options& options) {
  add_mesh(command, options);
  command.add_option("--parts", options.parts, "numbers of parts, as 4,8,16")->required()->delimiter(',');
  command.add_option("--partitioner", options.partitioner, "metis, scotch or slabs")->capture_default_str();
  command.add_flag("--each", options.each, "every rank's cells and messages, too (with --json)");
  command.add_flag("--json", options.json, "one JSON object");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "3D diffusion by explicit finite volumes on tetrahedra: computes, communicates, and reports how long it took");
  app.set_version_flag("--version", ELBOWROOM_VERSION);
  app.require_subcommand(1);
  Options options;
  auto* measuring = app.add_subcommand("measure", "answers requests on stdin; start it as MPI ranks");
  auto* solving = app.add_subcommand("solve", "runs to a time and prints the error against the known solution");
  auto* volumes = app.add_subcommand("volumes", "what a partition makes ranks exchange; no MPI");
  auto* split = app.add_subcommand("split", "steps that cores and an accelerator share; one JSON object, no MPI");
  add_ranks(*measuring, options);
  add_ranks(*solving, options);
  solving->add_option("--time", options.time, "end of the run")->required()->check(CLI::PositiveNumber);
  add_volumes(*volumes, options);
  add_split(*split, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!volumes->parsed() && !split->parsed()) {
    return program::with_ranks("diffusion", argc, argv, options.threads, [&](const Job& job) {
      return solving->parsed() ? solve(job, options) : measure(job, options);
    });
  }
  try {
    return split->parsed() ? print_split(options) : print_volumes(options);
  } catch (const RequestError& error) {
    std::cout << program::error_record(error).dump() << std::endl;
    return error.kind == "usage" ? 2 : 1;
  }
}
