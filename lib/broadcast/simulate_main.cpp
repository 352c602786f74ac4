// broadcast-simulator: one broadcast on a simulated cluster, by the same engine as on a real one. Prints one JSON object:
// when each recipient received and released the data.
#include <sys/mman.h>
#include <xbt/log.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <new>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine.hpp"
#include "simulated_transport.hpp"

namespace {

using namespace elbowroom::broadcast;
namespace s4u = simgrid::s4u;

struct Options {
  int recipients = 38;
  std::size_t size = 0;  // bytes
  double bandwidth = 0;  // B/s of each node's link, in each direction
  double latency = 0;    // s of each node's link
  std::string tree = "binomial";
  std::size_t segment = 0;  // bytes
  std::size_t window = 0;   // bytes
  bool rising = false;      // priorities rise with the rank, as in Figs 4.5 and 4.6
};

struct Times {
  std::vector<double> received;  // s, by rank
  std::vector<double> released;
};

// Each node with a link of its own to one switch that is never full.
std::vector<s4u::Host*> build_cluster(const Options& options) {
  auto* zone = s4u::create_star_zone("cluster");
  std::vector<s4u::Host*> hosts;
  for (int rank = 0; rank <= options.recipients; ++rank) {
    const std::string name = "node-" + std::to_string(rank);
    auto* host = zone->create_host(name, 1e9);
    const auto* link =
        zone->create_split_duplex_link(name + "-link", options.bandwidth)->set_latency(options.latency)->seal();
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                    {s4u::LinkInRoute(link, s4u::LinkInRoute::Direction::UP)}, true);
    hosts.push_back(host);
  }
  zone->seal();
  return hosts;
}

std::span<std::byte> reserve(std::size_t size) {
  void* const start = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<std::byte*>(start), size};
}

void run_rank(int rank, const Options& options, Times& times) {
  // Only small data are read and written: all ranks may have the same addresses, and need no memory for them.
  static const std::span<std::byte> data = reserve(options.size);
  SimulatedTransport transport(rank, options.recipients + 1);
  Settings settings;
  if (options.window != 0) settings.window = options.window;
  Engine engine(transport, settings);
  if (rank == 0) {
    std::vector<Destination> destinations;
    for (int to = 1; to <= options.recipients; ++to) destinations.push_back({to, options.rising ? to : 0});
    Way way;
    way.two_trees = options.tree == "two";
    if (!way.two_trees) way.tree = parse_tree(options.tree);
    way.segment = options.segment;
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
  const std::vector<s4u::Host*> hosts = build_cluster(options);
  const auto ranks = static_cast<std::size_t>(options.recipients) + 1;
  Times times{std::vector<double>(ranks), std::vector<double>(ranks)};
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    s4u::Actor::create("rank-" + std::to_string(rank), hosts[rank],
                       [rank, &options, &times] { run_rank(static_cast<int>(rank), options, times); });
  }
  engine.run();
  times.received.erase(times.received.begin());
  return {{"received", times.received}, {"released", times.released}};
}

}  // namespace

int main(int argc, char** argv) {
  xbt_log_control_set("root.thresh:warning");
  s4u::Engine engine(&argc, argv);
  // Bandwidths and latencies as given, shared by nothing but the links.
  for (const char* setting : {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0",
                              "network/latency-factor:1", "network/bandwidth-factor:1", "network/weight-S:0"}) {
    s4u::Engine::set_config(setting);
  }
  CLI::App app("One broadcast on a simulated cluster.");
  Options options;
  app.add_option("--recipients", options.recipients)->required();
  app.add_option("--size", options.size)->required();
  app.add_option("--bandwidth", options.bandwidth)->required();
  app.add_option("--latency", options.latency)->required();
  app.add_option("--tree", options.tree);
  app.add_option("--segment", options.segment);
  app.add_option("--window", options.window);
  app.add_flag("--rising", options.rising);
  CLI11_PARSE(app, argc, argv);
  std::cout << simulate(engine, options).dump() << '\n';
  return 0;
}
