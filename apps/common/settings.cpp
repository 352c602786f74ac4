#include "common/settings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/request_error.hpp"

namespace elbowroom::program {
namespace {

using nlohmann::json;

// Replaces what the object names.
Placement read_placement(const json& object, Placement placement) {
  placement.comp_cores = read(object, "comp_cores", placement.comp_cores);
  placement.comm_cores = read(object, "comm_cores", placement.comm_cores);
  placement.comp_node = read(object, "comp_node", placement.comp_node);
  placement.comm_node = read(object, "comm_node", placement.comm_node);
  return placement;
}

}  // namespace

Placement Settings::placement(int rank, bool same_host) const {
  for (const auto& [number, placement] : placements) {
    if (number == rank) {
      return placement;
    }
  }
  Placement result = first;
  if (rank != 0 && same_host && !peer_cores.empty()) {
    result.comm_cores = peer_cores;
  }
  return result;
}

void check_keys(const json& object, const std::string& what, std::initializer_list<const char*> known) {
  if (!object.is_object()) {
    throw RequestError(what, object.dump().substr(0, 80), fmt::format("{} is a JSON object", what),
                       "see docs/reference/protocol.md");
  }
  for (const auto& item : object.items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
      throw RequestError(item.key(), item.value().dump().substr(0, 80), fmt::format("{} has no such key", what),
                         fmt::format("known: {}", fmt::join(known, ", ")));
    }
  }
}

void check_build(const json& program, const std::string& build, int ranks) {
  const json named = program.value("build", json(build));
  if (named != build) {
    throw RequestError("build", named.dump(), fmt::format("this program is the {} build", build),
                       "start the program of that build");
  }
  if (program.value("ranks", json(ranks)) != ranks) {
    throw RequestError("ranks", program.at("ranks").dump(), fmt::format("{} were started", ranks),
                       "start as many as the settings say");
  }
}

Settings read_settings(const json& object) {
  check_keys(
      object, "config",
      {"program", "comp_cores", "comm_cores", "peer_cores", "comp_node", "comm_node", "placements", "scheduling"});
  Settings settings;
  settings.first = read_placement(object, {{}, {}, kNearest, kNearest});
  settings.peer_cores = read(object, "peer_cores", settings.peer_cores);
  settings.scheduling = read(object, "scheduling", settings.scheduling);
  settings.program = read(object, "program", settings.program);
  if (!settings.program.is_object()) {
    throw RequestError("program", settings.program.dump(), "is not a JSON object", "see docs/reference/protocol.md");
  }
  for (const json& one : read(object, "placements", std::vector<json>())) {
    check_keys(one, "placement", {"rank", "comp_cores", "comm_cores", "comp_node", "comm_node"});
    const int rank = read(one, "rank", -1);
    if (rank < 0) {
      throw RequestError("placements", one.dump(), "a placement is of a rank", "give \"rank\", from 0");
    }
    settings.placements.emplace_back(rank, read_placement(one, settings.first));
  }
  return settings;
}

}  // namespace elbowroom::program
