#include "diffusion/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace elbowroom::diffusion {
namespace {

using nlohmann::json;

std::string shown(const json& value) {
  return (value.is_string() ? value.get<std::string>() : value.dump()).substr(0, 80);
}

[[noreturn]] void refuse(const std::string& field, const json& value, const std::string& wanted) {
  throw RequestError(field, shown(value), fmt::format("{} must be {}", field, wanted), fmt::format("give {}", wanted));
}

void known_keys(const json& object, const std::string& what, std::initializer_list<const char*> known) {
  if (!object.is_object()) {
    throw RequestError(what, shown(object), fmt::format("a {} is a JSON object", what), "see apps/diffusion/README.md");
  }
  std::string list;
  for (const char* key : known) {
    list += (list.empty() ? "" : ", ") + std::string(key);
  }
  for (const auto& item : object.items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
      throw RequestError(item.key(), shown(item.value()), fmt::format("there is no such key in a {}", what),
                         "known: " + list);
    }
  }
}

std::int64_t whole(const json& value, const std::string& field, std::int64_t least, std::int64_t most) {
  const bool fits =
      value.is_number_integer() &&
      (!value.is_number_unsigned() ||
       value.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most) {
    refuse(field, value, fmt::format("a whole number from {} to {}", least, most));
  }
  return value.get<std::int64_t>();
}

double positive(const json& value, const std::string& field) {
  if (!value.is_number() || !(value.get<double>() > 0) || !std::isfinite(value.get<double>())) {
    refuse(field, value, "a positive number");
  }
  return value.get<double>();
}

bool truth(const json& value, const std::string& field) {
  if (!value.is_boolean()) {
    refuse(field, value, "true or false");
  }
  return value.get<bool>();
}

std::string text(const json& value, const std::string& field) {
  if (!value.is_string()) {
    refuse(field, value, "text");
  }
  return value.get<std::string>();
}

std::vector<int> cores(const json& value, const std::string& field) {
  if (!value.is_array() || value.empty()) {
    refuse(field, value, "a list of one core or more");
  }
  std::vector<int> all;
  for (const json& core : value) {
    all.push_back(static_cast<int>(whole(core, field, 0, std::numeric_limits<int>::max())));
  }
  return all;
}

std::array<int, 3> read_cubes(const json& config) {
  if (config.contains("cells") == config.contains("resolution")) {
    throw RequestError("resolution", "", "the size of the mesh is given once, as cells or as resolution",
                       "give one of the two");
  }
  if (config.contains("cells")) {
    return Mesh::nearest(whole(config["cells"], "cells", 1, std::numeric_limits<std::int32_t>::max())).cubes();
  }
  const json& resolution = config["resolution"];
  const bool list = resolution.is_array();
  if (list && resolution.size() != 3) {
    refuse("resolution", resolution, "one number of cubes, or three");
  }
  std::array<int, 3> cubes{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    cubes[axis] = static_cast<int>(whole(list ? resolution[axis] : resolution, "resolution", 1, 1 << 20));
  }
  return Mesh(cubes).cubes();
}

std::array<double, 2> read_kappa(const json& value) {
  if (!value.is_array()) {
    const double kappa = positive(value, "kappa");
    return {kappa, kappa};
  }
  if (value.size() != 2) {
    refuse("kappa", value, "one number, or one for each half of the box");
  }
  return {positive(value[0], "kappa"), positive(value[1], "kappa")};
}

void read_placement(const json& object, Placement& placement) {
  if (object.contains("comp_cores")) {
    placement.comp_cores = cores(object["comp_cores"], "comp_cores");
  }
  if (object.contains("comm_cores")) {
    placement.comm_cores = cores(object["comm_cores"], "comm_cores");
  }
  for (const auto& [key, node] : {std::pair{"comp_node", &placement.comp_node}, {"comm_node", &placement.comm_node}}) {
    if (object.contains(key)) {
      *node = static_cast<int>(whole(object[key], key, 0, std::numeric_limits<int>::max()));
    }
  }
}

void read_placements(const json& list, Config& config) {
  if (!list.is_array()) {
    refuse("placements", list, "a list of objects with a rank");
  }
  for (const json& entry : list) {
    known_keys(entry, "placement", {"rank", "comp_cores", "comm_cores", "comp_node", "comm_node"});
    if (!entry.contains("rank")) {
      refuse("placements", entry, "a list of objects with a rank");
    }
    const auto rank = static_cast<int>(whole(entry["rank"], "placements.rank", 0, std::numeric_limits<int>::max()));
    Placement placement = config.all;
    read_placement(entry, placement);
    config.placements.emplace_back(rank, placement);
  }
}

}  // namespace

const Placement& Config::placement(int rank) const {
  const auto own =
      std::find_if(placements.begin(), placements.end(), [rank](const auto& one) { return one.first == rank; });
  return own == placements.end() ? all : own->second;
}

Config read_config(const json& json) {
  known_keys(json, "config",
             {"cells", "resolution", "kappa", "dt", "partitioner", "reorder", "comp_cores", "comm_cores", "comp_node",
              "comm_node", "placements", "scheduling", "check"});
  Config config;
  config.cubes = read_cubes(json);
  if (json.contains("kappa")) {
    config.kappa = read_kappa(json["kappa"]);
  }
  if (json.contains("dt")) {
    config.dt = positive(json["dt"], "dt");
  }
  if (json.contains("partitioner")) {
    config.partitioner = partitioner_of(text(json["partitioner"], "partitioner"));
  }
  if (json.contains("reorder")) {
    config.order = order_of(text(json["reorder"], "reorder"));
  }
  read_placement(json, config.all);
  if (json.contains("placements")) {
    read_placements(json["placements"], config);
  }
  config.scheduling = json.contains("scheduling") && truth(json["scheduling"], "scheduling");
  config.check = !json.contains("check") || truth(json["check"], "check");
  return config;
}

Steps read_steps(const json& json) {
  known_keys(json, "request", {"variant", "comm_threads", "steps", "warmup"});
  if (!json.contains("variant")) {
    throw RequestError("variant", "", "a request names a variant", "known: none, communication, apart, overlap, triad");
  }
  Steps steps;
  steps.variant = variant_of(text(json["variant"], "variant"));
  if (json.contains("comm_threads")) {
    steps.comm_threads = static_cast<int>(whole(json["comm_threads"], "comm_threads", 1, 1024));
  }
  if (json.contains("steps")) {
    steps.steps = whole(json["steps"], "steps", 1, kMostSteps);
  }
  if (json.contains("warmup")) {
    steps.warmup = whole(json["warmup"], "warmup", 0, kMostSteps);
  }
  return steps;
}

json error_record(const RequestError& error) { return {{"error", error_fields(error)}}; }

}  // namespace elbowroom::diffusion
