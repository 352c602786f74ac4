// In which order the cells of a part lie in memory.
#pragma once

#include <string>
#include <vector>

#include "diffusion/mesh.hpp"

namespace elbowroom::diffusion {

enum class Order { tiles, natural, hilbert, rcm };

// "tiles", "natural", "hilbert" or "rcm"; throws RequestError.
Order order_of(const std::string& name);
std::string name_of(Order order);

// Sorts the cells. natural: by number, which goes through the box plane by plane; tiles: the same in one strip of the box
// after the other, so narrow that the planes beside a cell are still in the core's own cache; hilbert: along Hilbert's curve
// through the cubes; rcm: by Cuthill and McKee's levels of the cells' own graph, reversed. `cells` must come sorted by number.
void arrange(const Mesh& mesh, Order order, std::vector<CellId>& cells);

}  // namespace elbowroom::diffusion
