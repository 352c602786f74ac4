#include "diffusion/partition.hpp"

#include <fmt/format.h>
#include <metis.h>

#include <algorithm>
#include <array>

#include "protocol/request.hpp"

namespace elbowroom::diffusion {
namespace {

constexpr int kSeed = 1;  // of METIS' random choices: the same partition every time

struct Graph {
  std::vector<idx_t> first;       // of a cell's neighbours; one more than there are cells
  std::vector<idx_t> neighbours;  // of all cells
};

Graph dual_graph(const Mesh& mesh) {
  Graph graph;
  graph.first.reserve(static_cast<std::size_t>(mesh.cells()) + 1);
  graph.neighbours.reserve(static_cast<std::size_t>(mesh.cells()) * kFaces);
  graph.first.push_back(0);
  for (CellId cell = 0; cell < mesh.cells(); ++cell) {
    for (const CellId neighbour : mesh.neighbours(cell)) {
      if (neighbour != kWall) {
        graph.neighbours.push_back(static_cast<idx_t>(neighbour));
      }
    }
    graph.first.push_back(static_cast<idx_t>(graph.neighbours.size()));
  }
  return graph;
}

std::vector<std::int32_t> by_metis(const Mesh& mesh, int parts) {
  static_assert(sizeof(idx_t) == sizeof(std::int32_t), "METIS with 32-bit indices, as distributions build it");
  Graph graph = dual_graph(mesh);
  std::vector<std::int32_t> part(static_cast<std::size_t>(mesh.cells()), 0);
  std::array<idx_t, METIS_NOPTIONS> options{};
  METIS_SetDefaultOptions(options.data());
  options[METIS_OPTION_SEED] = kSeed;
  auto cells = static_cast<idx_t>(mesh.cells());
  idx_t constraints = 1;
  idx_t wanted = parts;
  idx_t cut = 0;
  const int status =
      METIS_PartGraphKway(&cells, &constraints, graph.first.data(), graph.neighbours.data(), nullptr, nullptr, nullptr,
                          &wanted, nullptr, nullptr, options.data(), &cut, part.data());
  if (status != METIS_OK) {
    throw RequestError("cells", std::to_string(mesh.cells()),
                       status == METIS_ERROR_MEMORY ? "METIS has too little memory for this mesh"
                                                    : fmt::format("METIS failed (status {})", status),
                       "give fewer cells, or the partitioner slabs", "machine");
  }
  return part;
}

std::vector<std::int32_t> by_slabs(const Mesh& mesh, int parts) {
  std::vector<std::int32_t> part(static_cast<std::size_t>(mesh.cells()));
  for (std::size_t cell = 0; cell < part.size(); ++cell) {
    part[cell] = static_cast<std::int32_t>(static_cast<std::int64_t>(cell) * parts / mesh.cells());
  }
  return part;
}

void refuse_empty(const std::vector<std::int32_t>& part, int parts) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(parts), 0);
  for (const std::int32_t one : part) {
    ++sizes[static_cast<std::size_t>(one)];
  }
  const auto empty = std::find(sizes.begin(), sizes.end(), 0);
  if (empty != sizes.end()) {
    throw RequestError("parts", std::to_string(parts),
                       fmt::format("the mesh of {} cells is too small to partition: part {} gets no cell", part.size(),
                                   empty - sizes.begin()),
                       "give more cells or fewer ranks");
  }
}

}  // namespace

Partitioner partitioner_of(const std::string& name) {
  if (name != "metis" && name != "slabs") {
    throw RequestError("partitioner", name, "there is no such partitioner", "known: metis, slabs");
  }
  return name == "metis" ? Partitioner::metis : Partitioner::slabs;
}

std::string name_of(Partitioner partitioner) { return partitioner == Partitioner::metis ? "metis" : "slabs"; }

std::vector<std::int32_t> partition(const Mesh& mesh, int parts, Partitioner partitioner) {
  if (parts < 1) {
    throw RequestError("parts", std::to_string(parts), "there is at least one part", "give 1 or more");
  }
  if (parts > mesh.cells()) {
    throw RequestError("parts", std::to_string(parts),
                       fmt::format("there are more ranks than the {} cells", mesh.cells()),
                       "give more cells or fewer ranks");
  }
  // METIS divides by zero when asked for one part.
  auto part = parts == 1 || partitioner == Partitioner::slabs ? by_slabs(mesh, parts) : by_metis(mesh, parts);
  refuse_empty(part, parts);
  return part;
}

}  // namespace elbowroom::diffusion
