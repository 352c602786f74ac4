// What a partition makes ranks exchange, without running anything: the volumes of Langguth 2018, figure 8.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "diffusion/mesh.hpp"
#include "diffusion/partition.hpp"

namespace elbowroom::diffusion {

// What one rank has and sends in a step.
struct RankVolume {
  std::int64_t cells = 0;
  std::int64_t separator_cells = 0;
  std::vector<std::pair<int, std::int64_t>> sent;  // rank and bytes, by rising rank
};

// One entry for each part; one pass over the mesh, 4 B a cell.
std::vector<RankVolume> rank_volumes(const Mesh& mesh, const std::vector<std::int32_t>& part, int parts);

// {"parts", "cells_largest", …}: totals, averages and maxima; `each` adds every rank's own. Sizes in bytes.
nlohmann::json volume_record(const std::vector<RankVolume>& ranks, bool each);

}  // namespace elbowroom::diffusion
