// What a user asks for: the configuration of a solver, and the requests to it.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/sharing.hpp"
#include "diffusion/order.hpp"
#include "diffusion/partition.hpp"
#include "diffusion/variant.hpp"
#include "protocol/request.hpp"

namespace elbowroom::diffusion {

using program::kNearest;

struct Config {
  std::array<int, 3> cubes{};
  std::array<double, 2> kappa{1, 1};  // of the lower and the upper half of the box
  std::optional<double> dt;           // as long as is stable when absent
  Partitioner partitioner = Partitioner::metis;
  Order order = Order::tiles;
  Placement all{{}, {}, kNearest, kNearest};          // of ranks that have none of their own
  std::vector<std::pair<int, Placement>> placements;  // by rank
  bool scheduling = false;  // a computing thread may share its core (flagged; docs/design/method.md, rule 4)
  bool check = true;        // results are validated after each request

  const Placement& placement(int rank) const;
};

// Reads types and names, refuses unknown keys; throws RequestError. Looks at no machine.
Config read_config(const nlohmann::json& json);
Steps read_steps(const nlohmann::json& json);

// {"error": {"kind", "field", "value", "message", "hint"}}
nlohmann::json error_record(const RequestError& error);

}  // namespace elbowroom::diffusion
