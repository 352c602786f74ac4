// elbow-load: memory traffic of a known rate on some cores, beside a program whose demand is measured (README.md).
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/system_files.hpp"
#include "machine/machine.hpp"
#include "workers.hpp"

namespace {

using elbowroom::Machine;
using namespace elbowroom::load;

constexpr std::uint64_t kCaches = 4;  // last-level caches that the largest footprint is as large as
constexpr std::uint64_t kUnknownCache = 64 << 20;
constexpr int kPollMs = 100;

struct Options {
  std::string cores;
  std::uint64_t footprint = 0;
  double seconds = 600;
  std::string priority = "idle";
};

void print(const nlohmann::json& line) { std::cout << line.dump() << std::endl; }

// An object with `footprint` (B) and `rate` (B/s of each core; null: as fast as possible).
Setting parsed(const std::string& line, std::uint64_t most) {
  const nlohmann::json request = nlohmann::json::parse(line);
  const nlohmann::json rate = request.at("rate");
  const Setting setting{request.value("footprint", most),
                        rate.is_null() ? std::numeric_limits<double>::infinity() : rate.get<double>()};
  if (!(setting.rate >= 0)) throw std::invalid_argument("rate: must be 0 or greater");
  if (setting.footprint > most) {
    throw std::invalid_argument("footprint: at most " + std::to_string(most) + " B, as --footprint says");
  }
  return setting;
}

nlohmann::json record(const Done& done) {
  return {{"ns", done.ns}, {"bytes", done.bytes}, {"waited_ns", done.waited_ns}};
}

// Answers lines until the input ends, which is when the starting program ends, or the time has passed.
int serve(const std::vector<int>& cores, std::uint64_t most, const Options& options) {
  const Priority priority = options.priority == "idle"   ? Priority::idle
                            : options.priority == "nice" ? Priority::nice
                                                         : Priority::normal;
  Workers workers(cores, most, options.seconds, priority);
  print({{"cores", cores},
         {"footprint", most},
         {"cache", Machine::here().last_level_cache()},
         {"priority", workers.priority()},
         {"seconds", options.seconds}});
  std::string text;
  char buffer[4096];
  while (!workers.over()) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, kPollMs) <= 0) continue;
    const ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
    if (count <= 0) return 0;
    text.append(buffer, static_cast<std::size_t>(count));
    for (std::size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
      const std::string line = text.substr(0, end);
      if (!line.empty()) workers.set(parsed(line, most));
      print(record(workers.done()));
    }
  }
  std::cerr << "elbow-load: stopped after " << options.seconds << " s (--seconds)" << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // It ends with the program that started it, even if that is killed.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  CLI::App app("memory traffic of a known rate on some cores; reads settings from standard input", "elbow-load");
  Options options;
  app.add_option("--cores", options.cores, "cores with a thread each: 1,3-5")->required();
  app.add_option("--footprint", options.footprint,
                 "bytes of each core's largest footprint; default: four last-level caches")
      ->transform(CLI::AsSizeValue(true))
      ->check(CLI::Range(std::uint64_t{1} << 16, std::uint64_t{1} << 40));
  app.add_option("--seconds", options.seconds, "it ends after this time")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  app.add_option("--priority", options.priority, "against other threads of its cores: idle, nice, normal")
      ->check(CLI::IsMember({"idle", "nice", "normal"}))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    const std::uint64_t cache = Machine::here().last_level_cache();
    const std::uint64_t most =
        options.footprint > 0 ? options.footprint : kCaches * (cache > 0 ? cache : kUnknownCache);
    return serve(elbowroom::parse_cpu_list(options.cores), most, options);
  } catch (const std::invalid_argument& error) {
    print({{"error", error.what()}, {"kind", "usage"}});
    return 2;
  } catch (const nlohmann::json::exception& error) {
    print({{"error", error.what()}, {"kind", "usage"}});
    return 2;
  } catch (const std::exception& error) {
    print({{"error", error.what()}, {"kind", "machine"}});
    return 1;
  }
}
