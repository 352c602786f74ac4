// Which rank owns which cell.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diffusion/mesh.hpp"

namespace elbowroom::diffusion {

enum class Partitioner { metis, scotch, slabs };

// "metis", "scotch" or "slabs"; throws RequestError, also where this program was built without Scotch.
Partitioner partitioner_of(const std::string& name);
std::string name_of(Partitioner partitioner);

// The part of each cell. metis: METIS' multilevel k-way partition of the dual graph (cells that share a face are
// neighbours); scotch: Scotch's partition of the same graph; both always the same for the same mesh; slabs: equal shares of the cells in the order of their numbers, which are
// slabs across x. Throws RequestError when there are more parts than cells, or a part gets none.
std::vector<std::int32_t> partition(const Mesh& mesh, int parts, Partitioner partitioner);

}  // namespace elbowroom::diffusion
