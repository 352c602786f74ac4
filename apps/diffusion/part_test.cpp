#include "diffusion/part.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "diffusion/partition.hpp"

namespace elbowroom::diffusion {
namespace {

constexpr int kParts = 5;

std::vector<Part> parts_of(const Mesh& mesh, Order order) {
  const auto part = partition(mesh, kParts, Partitioner::metis);
  std::vector<Part> parts;
  for (int rank = 0; rank < kParts; ++rank) {
    parts.push_back(make_part(mesh, part, rank, order));
  }
  return parts;
}

const Link& link_to(const Part& part, int rank) {
  return *std::find_if(part.links.begin(), part.links.end(), [rank](const Link& link) { return link.rank == rank; });
}

TEST_CASE("every cell is in one slot of one part, whatever the order") {
  const Mesh mesh({5, 4, 6});
  for (const Order order : {Order::tiles, Order::natural, Order::hilbert, Order::rcm}) {
    std::multiset<CellId> held;
    for (const Part& part : parts_of(mesh, order)) {
      std::copy_if(part.slots.begin(), part.slots.end(), std::inserter(held, held.end()),
                   [](CellId cell) { return cell != kNoCell; });
    }
    REQUIRE(held.size() == static_cast<std::size_t>(mesh.cells()));
    CHECK(std::set<CellId>(held.begin(), held.end()).size() == held.size());
  }
}

TEST_CASE("the separator is what others need, and comes first in whole slices") {
  const Mesh mesh({5, 4, 6});
  for (const Part& part : parts_of(mesh, Order::tiles)) {
    const std::set<CellId> ghosts(part.ghosts.begin(), part.ghosts.end());
    CHECK(part.separator % kSlice == 0);
    CHECK(part.own() % kSlice == 0);
    for (std::int32_t slot = 0; slot < part.own(); ++slot) {
      const CellId cell = part.slots[static_cast<std::size_t>(slot)];
      if (cell != kNoCell) {
        const auto neighbours = mesh.neighbours(cell);
        const bool touches =
            std::any_of(neighbours.begin(), neighbours.end(), [&](CellId other) { return ghosts.count(other) != 0; });
        REQUIRE(touches == (slot < part.separator));
      }
    }
  }
}

TEST_CASE("what one part sends is what the other expects, cell by cell") {
  const Mesh mesh({5, 4, 6});
  const auto parts = parts_of(mesh, Order::hilbert);
  for (const Part& sender : parts) {
    for (const Link& link : sender.links) {
      const Part& receiver = parts[static_cast<std::size_t>(link.rank)];
      const Link& back = link_to(receiver, sender.rank);
      REQUIRE(back.ghosts == static_cast<std::int32_t>(link.send.size()));
      for (std::size_t i = 0; i < link.send.size(); ++i) {
        const auto ghost = static_cast<std::size_t>(back.first_ghost - receiver.own()) + i;
        REQUIRE(sender.slots[static_cast<std::size_t>(link.send[i])] == receiver.ghosts[ghost]);
      }
    }
  }
}

TEST_CASE("Hilbert's curve keeps cells that follow each other in cubes that touch") {
  const Mesh mesh({8, 8, 8});
  std::vector<CellId> cells;
  for (CellId cell = 0; cell < mesh.cells(); ++cell) {
    cells.push_back(cell);
  }
  arrange(mesh, Order::hilbert, cells);
  for (std::size_t i = 1; i < cells.size(); ++i) {
    const auto a = mesh.cube(cells[i - 1]);
    const auto b = mesh.cube(cells[i]);
    REQUIRE(std::abs(a[0] - b[0]) + std::abs(a[1] - b[1]) + std::abs(a[2] - b[2]) <= 1);
  }
}

TEST_CASE("Cuthill and McKee's order narrows the band of a shuffled numbering") {
  const Mesh mesh({12, 2, 2});
  const auto band = [&](const std::vector<CellId>& cells) {
    std::vector<std::ptrdiff_t> place(static_cast<std::size_t>(mesh.cells()));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      place[static_cast<std::size_t>(cells[i])] = static_cast<std::ptrdiff_t>(i);
    }
    std::ptrdiff_t widest = 0;
    for (CellId cell = 0; cell < mesh.cells(); ++cell) {
      for (const CellId other : mesh.neighbours(cell)) {
        if (other != kWall) {
          widest = std::max(widest,
                            std::abs(place[static_cast<std::size_t>(cell)] - place[static_cast<std::size_t>(other)]));
        }
      }
    }
    return widest;
  };
  std::vector<CellId> cells;
  for (CellId cell = 0; cell < mesh.cells(); ++cell) {
    cells.push_back(cell);
  }
  const std::ptrdiff_t before = band(cells);
  arrange(mesh, Order::rcm, cells);
  CHECK(band(cells) < before);
}

}  // namespace
}  // namespace elbowroom::diffusion
