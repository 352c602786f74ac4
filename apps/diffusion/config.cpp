#include "diffusion/config.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/request_error.hpp"
#include "common/settings.hpp"

namespace elbowroom::diffusion {
namespace {

using nlohmann::json;

std::string shown(const json& value) {
  return (value.is_string() ? value.get<std::string>() : value.dump()).substr(0, 80);
}

[[noreturn]] void refuse(const std::string& field, const json& value, const std::string& wanted) {
  throw RequestError(field, shown(value), fmt::format("{} must be {}", field, wanted), fmt::format("give {}", wanted));
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

}  // namespace

Config read_config(const json& json) {
  program::check_keys(json, "program",
                      {"name", "mesh", "cells", "resolution", "kappa", "dt", "partitioner", "reorder", "check"});
  Config config;
  if (json.contains("mesh")) {
    for (const char* other : {"cells", "resolution"}) {
      if (json.contains(other)) {
        throw RequestError(other, shown(json[other]), "the mesh of a file has its own size", "leave it out");
      }
    }
    config.mesh = text(json["mesh"], "mesh");
  } else {
    config.cubes = read_cubes(json);
  }
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
  config.check = !json.contains("check") || truth(json["check"], "check");
  return config;
}

Steps read_steps(const json& json) {
  program::check_keys(json, "request", {"op", "point", "repetition", "variant", "comm_threads", "steps", "warmup"});
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
  if (json.contains("point")) {
    steps.point = text(json["point"], "point");
  }
  if (json.contains("repetition")) {
    steps.repetition = whole(json["repetition"], "repetition", 0, std::numeric_limits<std::int64_t>::max());
  }
  return steps;
}

}  // namespace elbowroom::diffusion
