// The clusters on which broadcasts are simulated.
#pragma once

#include <cstdint>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace elbowroom::broadcast {

struct PlatformRequest {
  int nodes = 0;
  double bandwidth = 0;   // B/s of each node's link, in each direction
  double latency = 0;     // s of each link
  std::string file;       // SimGrid's XML; empty: a cluster of the following racks
  int racks = 1;          // 1: a star, all nodes at one switch
  double uplink = 0;      // B/s from each rack's switch to the one that joins them
  bool shuffled = false;  // ranks are on nodes in random order, else rack after rack
};

struct Platform {
  std::vector<simgrid::s4u::Host*> hosts;  // by rank
  std::vector<std::uint16_t> racks;        // by rank; empty for a file
};

// Bandwidths and latencies as given, shared by nothing but the links. Call before a platform is built.
void set_network_model();

// Throws std::invalid_argument where a file is no platform or has too few hosts.
Platform build_platform(simgrid::s4u::Engine& engine, const PlatformRequest& request);

}  // namespace elbowroom::broadcast
