#include "nic/settings.hpp"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>

namespace elbowroom::nic {
namespace {

constexpr double kBurst = 8192;  // bytes
constexpr double kNap = 100e-6;  // s
constexpr std::size_t kLongestName = 200;

std::string text(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? "" : value;
}

std::optional<double> number(const std::string& value) {
  char* end = nullptr;
  errno = 0;
  const double result = std::strtod(value.c_str(), &end);
  if (value.empty() || end != value.c_str() + value.size() || errno != 0 || !std::isfinite(result)) {
    return std::nullopt;
  }
  return result;
}

// A number of at least `least`; `otherwise` where the variable is not set.
double read(const Environment& environment, const char* name, double otherwise, double least, std::string& error) {
  const std::string value = text(environment, name);
  if (value.empty() && std::isfinite(otherwise)) {
    return otherwise;
  }
  const std::optional<double> result = number(value);
  if (!result || *result < least) {
    error = std::string(name) + " is '" + value + "': give a number of at least " +
            (least == 0   ? "0"
             : least == 1 ? "1"
                          : "1000");
    return least;
  }
  return *result;
}

// The node at a place of the list in ELBOW_NIC_NODES, which has those of this job in order; without it, the place.
int node_at(const Environment& environment, int place, std::string& error) {
  const std::string list = text(environment, "ELBOW_NIC_NODES");
  std::istringstream words(list);
  std::string word;
  int node = place;
  for (int i = 0; i <= place && !list.empty(); ++i) {
    const std::optional<double> one = std::getline(words, word, ',') ? number(word) : std::nullopt;
    if (!one || *one < 0 || *one != std::floor(*one)) {
      error = "ELBOW_NIC_NODES is '" + list + "': give at least " + std::to_string(place + 1) + " nodes: 0,1";
      return 0;
    }
    node = *one < kNodes ? static_cast<int>(*one) : kNodes;
  }
  if (node >= kNodes) {
    error = (list.empty() ? "ELBOW_NIC_RANKS_PER_NODE is '" + text(environment, "ELBOW_NIC_RANKS_PER_NODE")
                          : "ELBOW_NIC_NODES is '" + list) +
            "': this rank would be on node " + std::to_string(node) + ", and there are at most " +
            std::to_string(kNodes);
  }
  return node;
}

// Slurm sets its own in the batch script, too, whose commands are no ranks.
std::string rank_of(const Environment& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    const std::string value = text(environment, name);
    if (!value.empty()) {
      return value;
    }
  }
  return text(environment, "SLURM_STEP_ID").empty() ? "" : text(environment, "SLURM_PROCID");
}

}  // namespace

Settings read_settings(const Environment& environment) {
  Settings settings;
  const std::optional<double> rank = number(rank_of(environment));
  const std::string name = text(environment, "ELBOW_NIC_NAME");
  if (name.empty() || !rank || *rank < 0) {
    return settings;
  }
  settings.name = name;
  settings.rank = static_cast<int>(*rank);
  if (name.size() > kLongestName || name.find('/') != std::string::npos) {
    settings.error = "ELBOW_NIC_NAME is '" + name + "': give at most 200 characters without /";
  }
  const double per_node = read(environment, "ELBOW_NIC_RANKS_PER_NODE", 1, 1, settings.error);
  settings.node = node_at(environment, settings.rank / static_cast<int>(per_node), settings.error);
  settings.nic.bandwidth = read(environment, "ELBOW_NIC_BANDWIDTH", NAN, 1000, settings.error);
  settings.nic.burst = read(environment, "ELBOW_NIC_BURST", kBurst, 1000, settings.error);
  settings.nic.latency_ns =
      static_cast<std::int64_t>(read(environment, "ELBOW_NIC_LATENCY", 0, 0, settings.error) * 1e9);
  settings.nap_ns = static_cast<std::int64_t>(read(environment, "ELBOW_NIC_NAP", kNap, 0, settings.error) * 1e9);
  settings.log = text(environment, "ELBOW_NIC_LOG");
  return settings;
}

}  // namespace elbowroom::nic
