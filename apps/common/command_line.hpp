// The command line of a program that answers runs: --version, `measure --config FILE`, and what it adds.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "common/serve.hpp"

namespace elbowroom::program {

class CommandLine {
 public:
  CommandLine(const std::string& description, const std::string& ranks, const std::string& config) : app(description) {
    app.set_version_flag("--version", ELBOWROOM_VERSION);
    app.require_subcommand(1);
    measuring = app.add_subcommand("measure", "answers requests on stdin; start it as " + ranks);
    measuring->add_option("--config", config_, "JSON file: " + config)->required();
  }

  // The probe's option, of which the program knows one value.
  void accept_threads(const std::string& level) {
    measuring->add_option("--threads", threads_, "accepted as by the probe: the level is " + level)
        ->check(CLI::IsMember({level}));
  }

  // The exit code, where the program is over: 2 for a wrong command line.
  std::optional<int> parse(int argc, char** argv) {
    try {
      app.parse(argc, argv);
      return std::nullopt;
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? 0 : 2;
    }
  }

  // Answers requests by what is made from the settings of --config.
  template <typename Made, typename... More>
  int serve(const Job& job, const More&... more) const {
    return program::serve(job, config_, [&](const Job& all, const Settings& settings) {
      return std::make_unique<Made>(all, settings, more...);
    });
  }

  CLI::App app;
  CLI::App* measuring = nullptr;

 private:
  std::string config_;
  std::string threads_;
};

}  // namespace elbowroom::program
