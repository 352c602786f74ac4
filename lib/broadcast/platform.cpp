#include "platform.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>

namespace elbowroom::broadcast {
namespace {

namespace s4u = simgrid::s4u;
using Direction = s4u::LinkInRoute::Direction;

// Nodes of a rack with a link each to its switch, which is never full.
void add_rack(s4u::NetZone* zone, int first, int count, const PlatformRequest& request,
              std::vector<s4u::Host*>& hosts) {
  for (int node = first; node < first + count; ++node) {
    const std::string name = "node-" + std::to_string(node);
    auto* host = zone->create_host(name, 1e9);
    const auto* link =
        zone->create_split_duplex_link(name + "-link", request.bandwidth)->set_latency(request.latency)->seal();
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {s4u::LinkInRoute(link, Direction::UP)}, true);
    hosts.push_back(host);
  }
}

std::vector<s4u::Host*> build_cluster(const PlatformRequest& request, std::vector<std::uint16_t>& racks) {
  std::vector<s4u::Host*> hosts;
  auto* cluster = s4u::create_star_zone("cluster");
  if (request.racks == 1) add_rack(cluster, 0, request.nodes, request, hosts);
  for (int rack = 0; rack < request.racks && request.racks > 1; ++rack) {
    const int first = request.nodes * rack / request.racks;
    const int behind = request.nodes * (rack + 1) / request.racks;
    const std::string name = "rack-" + std::to_string(rack);
    auto* zone = s4u::create_star_zone(name);
    zone->set_parent(cluster);
    auto* router = zone->create_router(name + "-switch");
    zone->add_route(router, nullptr, nullptr, nullptr, std::vector<s4u::LinkInRoute>{}, true);
    add_rack(zone, first, behind - first, request, hosts);
    zone->seal();
    const auto* link =
        cluster->create_split_duplex_link(name + "-uplink", request.uplink)->set_latency(request.latency)->seal();
    cluster->add_route(zone->get_netpoint(), nullptr, router, nullptr, {s4u::LinkInRoute(link, Direction::UP)}, true);
    racks.insert(racks.end(), static_cast<std::size_t>(behind - first), static_cast<std::uint16_t>(rack));
  }
  if (request.racks == 1) racks.assign(hosts.size(), 0);
  cluster->seal();
  return hosts;
}

// The hosts of a zone and of those in it, in the order of the file.
void collect_hosts(const s4u::NetZone* zone, std::vector<s4u::Host*>& hosts) {
  const std::vector<s4u::NetZone*> inner = zone->get_children();
  if (inner.empty()) {
    const std::vector<s4u::Host*> own = zone->get_all_hosts();
    hosts.insert(hosts.end(), own.begin(), own.end());
  }
  for (const s4u::NetZone* const child : inner) collect_hosts(child, hosts);
}

}  // namespace

Platform build_platform(s4u::Engine& engine, const PlatformRequest& request) {
  Platform platform;
  const auto nodes = static_cast<std::size_t>(request.nodes);
  if (!request.file.empty()) {
    engine.load_platform(request.file);
    collect_hosts(engine.get_netzone_root(), platform.hosts);
    if (platform.hosts.size() < nodes) {
      throw std::invalid_argument("has " + std::to_string(platform.hosts.size()) + " hosts, and " +
                                  std::to_string(nodes) + " are needed");
    }
    platform.hosts.resize(nodes);
    return platform;
  }
  std::vector<std::uint16_t> racks;
  const std::vector<s4u::Host*> hosts = build_cluster(request, racks);
  std::vector<std::size_t> order(nodes);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(1);
  if (request.shuffled) std::shuffle(order.begin(), order.end(), random);
  for (const std::size_t node : order) {
    platform.hosts.push_back(hosts[node]);
    platform.racks.push_back(racks[node]);
  }
  return platform;
}

void set_network_model() {
  for (const char* setting : {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0",
                              "network/latency-factor:1", "network/bandwidth-factor:1", "network/weight-S:0"}) {
    simgrid::s4u::Engine::set_config(setting);
  }
}

}  // namespace elbowroom::broadcast
