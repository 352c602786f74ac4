// broadcast-simulator: one broadcast on a simulated cluster, by the same engine as on a real one. Prints one JSON object:
// when each recipient received and released the data.
#include <sys/mman.h>
#include <xbt/log.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <new>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine.hpp"
#include "platform.hpp"
#include "simulated_transport.hpp"
#include "ways.hpp"

namespace {

using namespace elbowroom::broadcast;
namespace s4u = simgrid::s4u;

struct Options {
  int recipients = 38;
  std::size_t size = 0;  // bytes
  PlatformRequest platform;
  double overhead = 0;  // s of a rank for each message
  std::string tree = "binomial";
  std::size_t segment = 0;      // bytes
  std::size_t window = 0;       // bytes
  bool known_racks = false;     // the library knows the racks
  std::vector<int> priorities;  // by recipient; empty: all the same
};

struct Times {
  std::vector<double> received;  // s, by rank
  std::vector<double> released;
};

std::span<std::byte> reserve(std::size_t size) {
  void* const start = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<std::byte*>(start), size};
}

Settings settings_of(const Options& options, const Platform& platform) {
  Settings settings;
  if (options.window != 0) settings.window = options.window;
  if (options.known_racks) settings.groups = platform.racks;
  return settings;
}

Way way_of(const Options& options, const Settings& settings) {
  if (options.tree != "auto") return parse_way(options.tree, options.segment);
  const Network network{options.platform.latency, options.overhead, options.platform.bandwidth, 0};
  return best_way(network, settings, options.size, static_cast<std::size_t>(options.recipients), options.segment);
}

void run_rank(int rank, const Options& options, const Settings& settings, const Way& way, Times& times) {
  // Only small data are read and written: all ranks may have the same addresses, and need no memory for them.
  static const std::span<std::byte> data = reserve(options.size);
  SimulatedTransport transport(rank, options.recipients + 1, options.overhead);
  Engine engine(transport, settings);
  if (rank == 0) {
    std::vector<Destination> destinations;
    for (int to = 1; to <= options.recipients; ++to) {
      destinations.push_back(
          {to, options.priorities.empty() ? 0 : options.priorities[static_cast<std::size_t>(to - 1)]});
    }
    engine.send(0, 0, data, destinations, way);
  } else {
    engine.receive({0, 0, 0}, data);
  }
  for (bool over = false; !over;) {
    engine.progress();
    while (const auto event = engine.next_event()) {
      auto& at = event->kind == Event::Kind::kReceived ? times.received : times.released;
      at[static_cast<std::size_t>(rank)] = transport.now();
      over = over || event->kind == Event::Kind::kReleased;
    }
    if (!over) transport.wait();
  }
}

nlohmann::json simulate(s4u::Engine& engine, const Options& options) {
  const Platform platform = build_platform(engine, options.platform);
  const Settings settings = settings_of(options, platform);
  const Way way = way_of(options, settings);
  const auto ranks = static_cast<std::size_t>(options.recipients) + 1;
  Times times{std::vector<double>(ranks), std::vector<double>(ranks)};
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    s4u::Actor::create("rank-" + std::to_string(rank), platform.hosts[rank],
                       [&, rank] { run_rank(static_cast<int>(rank), options, settings, way, times); });
  }
  engine.run();
  times.received.erase(times.received.begin());
  return {
      {"tree", format_way(way)}, {"segment", way.segment}, {"received", times.received}, {"released", times.released}};
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--recipients", options.recipients)->required();
  app.add_option("--size", options.size)->required();
  app.add_option("--bandwidth", options.platform.bandwidth)->required();
  app.add_option("--latency", options.platform.latency)->required();
  app.add_option("--overhead", options.overhead);
  app.add_option("--tree", options.tree);
  app.add_option("--segment", options.segment);
  app.add_option("--window", options.window);
  app.add_option("--platform", options.platform.file);
  app.add_option("--racks", options.platform.racks);
  app.add_option("--uplink", options.platform.uplink);
  app.add_flag("--shuffled", options.platform.shuffled);
  app.add_flag("--known-racks,--told", options.known_racks);
  app.add_option("--priorities", options.priorities)->delimiter(',');
}

}  // namespace

int main(int argc, char** argv) {
  xbt_log_control_set("root.thresh:warning");
  s4u::Engine engine(&argc, argv);
  set_network_model();
  CLI::App app("One broadcast on a simulated cluster.");
  Options options;
  add_options(app, options);
  CLI11_PARSE(app, argc, argv);
  options.platform.nodes = options.recipients + 1;
  try {
    std::cout << simulate(engine, options).dump() << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cout << nlohmann::json{{"error", error.what()}}.dump() << '\n';
    return 2;
  }
}
