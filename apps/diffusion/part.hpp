// One rank's share of the mesh: its cells in the order they lie in memory, and what it exchanges with whom.
#pragma once

#include <cstdint>
#include <vector>

#include "diffusion/mesh.hpp"
#include "diffusion/order.hpp"

namespace elbowroom::diffusion {

// Cells are computed eight at a time; separator and interior each fill whole slices, the last one with slots of no cell.
inline constexpr std::int32_t kSlice = 8;
inline constexpr CellId kNoCell = -1;

// What is exchanged with one other rank. Both sides list the cells by rising number, so that no numbers need be sent.
struct Link {
  int rank = 0;
  std::vector<std::int32_t> send;  // slots whose values go there
  std::int32_t first_ghost = 0;    // the values from there go into slots from this one on
  std::int32_t ghosts = 0;         // how many
};

struct Part {
  int rank = 0;
  std::vector<CellId> slots;         // separator, then interior; kNoCell where a slot is empty
  std::int32_t separator = 0;        // slots of the separator, the empty ones included
  std::int64_t separator_cells = 0;  // cells with a neighbour on another rank
  std::int64_t cells = 0;
  std::vector<CellId> ghosts;  // cells of others beside ours; they follow the slots
  std::vector<Link> links;     // by rising rank

  std::int32_t own() const { return static_cast<std::int32_t>(slots.size()); }
  std::int32_t all() const { return own() + static_cast<std::int32_t>(ghosts.size()); }
  std::int64_t cells_sent() const;
};

// `part[cell]` is the rank of each cell. Takes memory for the cells of all ranks while it runs (4 B each).
Part make_part(const Mesh& mesh, const std::vector<std::int32_t>& part, int rank, Order order);

// The place of each cell among slots and ghosts; -1 for cells that are neither. As long as the mesh has cells.
std::vector<std::int32_t> places(const Mesh& mesh, const Part& part);

}  // namespace elbowroom::diffusion
