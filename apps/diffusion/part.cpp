#include "diffusion/part.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace elbowroom::diffusion {
namespace {

struct Halo {
  std::vector<CellId> send;
  std::vector<CellId> receive;
};

void sort_and_unify(std::vector<CellId>& cells) {
  std::sort(cells.begin(), cells.end());
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
}

void append_filled(std::vector<CellId>& slots, const std::vector<CellId>& cells) {
  slots.insert(slots.end(), cells.begin(), cells.end());
  slots.resize((slots.size() + kSlice - 1) / kSlice * kSlice, kNoCell);
}

void append_links(const std::map<int, Halo>& halos, const std::vector<std::int32_t>& place, Part& own) {
  for (const auto& [rank, halo] : halos) {
    Link link;
    link.rank = rank;
    for (const CellId cell : halo.send) {
      link.send.push_back(place[static_cast<std::size_t>(cell)]);
    }
    link.first_ghost = own.all();
    link.ghosts = static_cast<std::int32_t>(halo.receive.size());
    own.ghosts.insert(own.ghosts.end(), halo.receive.begin(), halo.receive.end());
    own.links.push_back(std::move(link));
  }
}

}  // namespace

std::int64_t Part::cells_sent() const {
  return std::accumulate(links.begin(), links.end(), std::int64_t{0}, [](std::int64_t sum, const Link& link) {
    return sum + static_cast<std::int64_t>(link.send.size());
  });
}

Part make_part(const Mesh& mesh, const std::vector<std::int32_t>& part, int rank, Order order) {
  std::vector<CellId> separator;
  std::vector<CellId> interior;
  std::map<int, Halo> halos;
  for (CellId cell = 0; cell < mesh.cells(); ++cell) {
    if (part[static_cast<std::size_t>(cell)] != rank) {
      continue;
    }
    bool shared = false;
    for (const CellId other : mesh.neighbours(cell)) {
      const int owner = other == kWall ? rank : part[static_cast<std::size_t>(other)];
      if (owner != rank) {
        shared = true;
        halos[owner].send.push_back(cell);
        halos[owner].receive.push_back(other);
      }
    }
    (shared ? separator : interior).push_back(cell);
  }
  for (auto& [owner, halo] : halos) {
    sort_and_unify(halo.send);
    sort_and_unify(halo.receive);
  }
  arrange(mesh, order, separator);
  arrange(mesh, order, interior);
  Part own;
  own.rank = rank;
  own.separator_cells = static_cast<std::int64_t>(separator.size());
  own.cells = own.separator_cells + static_cast<std::int64_t>(interior.size());
  append_filled(own.slots, separator);
  own.separator = own.own();
  append_filled(own.slots, interior);
  append_links(halos, places(mesh, own), own);
  return own;
}

std::vector<std::int32_t> places(const Mesh& mesh, const Part& part) {
  std::vector<std::int32_t> place(static_cast<std::size_t>(mesh.cells()), -1);
  std::int32_t next = 0;
  for (const auto* list : {&part.slots, &part.ghosts}) {
    for (const CellId cell : *list) {
      if (cell != kNoCell) {
        place[static_cast<std::size_t>(cell)] = next;
      }
      ++next;
    }
  }
  return place;
}

}  // namespace elbowroom::diffusion
