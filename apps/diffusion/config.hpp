// What is solved, and what a request asks for.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "diffusion/order.hpp"
#include "diffusion/partition.hpp"
#include "diffusion/variant.hpp"

namespace elbowroom::diffusion {

struct Config {
  std::array<int, 3> cubes{};
  std::string mesh;                   // a file, in place of a box of cubes
  std::array<double, 2> kappa{1, 1};  // of the lower and the upper half of the box
  std::optional<double> dt;           // as long as is stable when absent
  Partitioner partitioner = Partitioner::metis;
  Order order = Order::tiles;
  bool check = true;  // results are validated after each request
};

// Reads `program` of the settings. Both read types and names, refuse unknown keys, and throw RequestError.
Config read_config(const nlohmann::json& json);
Steps read_steps(const nlohmann::json& json);

}  // namespace elbowroom::diffusion
