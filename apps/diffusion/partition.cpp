#include "diffusion/partition.hpp"

#include <fmt/format.h>
#include <metis.h>

#include <algorithm>
#include <array>
#include <cstdio>  // scotch.h, below, takes files and does not include it
#include <utility>

#include "protocol/request.hpp"

#ifdef ELBOWROOM_SCOTCH
#include <scotch.h>
#endif

namespace elbowroom::diffusion {
namespace {

constexpr int kSeed = 1;  // of random choices: the same partition every time

constexpr std::array kNames{std::pair{"metis", Partitioner::metis}, std::pair{"scotch", Partitioner::scotch},
                            std::pair{"slabs", Partitioner::slabs}};

#ifdef ELBOWROOM_SCOTCH
constexpr bool kHasScotch = true;
#else
constexpr bool kHasScotch = false;
#endif

struct Graph {
  std::vector<std::int32_t> first;       // of a cell's neighbours; one more than there are cells
  std::vector<std::int32_t> neighbours;  // of all cells
};

Graph dual_graph(const Mesh& mesh) {
  Graph graph;
  graph.first.reserve(static_cast<std::size_t>(mesh.cells()) + 1);
  graph.neighbours.reserve(static_cast<std::size_t>(mesh.cells()) * kFaces);
  graph.first.push_back(0);
  for (CellId cell = 0; cell < mesh.cells(); ++cell) {
    for (const CellId neighbour : mesh.neighbours(cell)) {
      if (neighbour != kWall) {
        graph.neighbours.push_back(static_cast<std::int32_t>(neighbour));
      }
    }
    graph.first.push_back(static_cast<std::int32_t>(graph.neighbours.size()));
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

#ifdef ELBOWROOM_SCOTCH
// SCOTCH_Graph and SCOTCH_Strat hold memory that their own functions give back.
struct ScotchGraph {
  SCOTCH_Graph graph{};
  SCOTCH_Strat strategy{};
  ScotchGraph() {
    SCOTCH_graphInit(&graph);
    SCOTCH_stratInit(&strategy);
  }
  ~ScotchGraph() {
    SCOTCH_stratExit(&strategy);
    SCOTCH_graphExit(&graph);
  }
  ScotchGraph(const ScotchGraph&) = delete;
  ScotchGraph& operator=(const ScotchGraph&) = delete;
};

std::vector<std::int32_t> by_scotch(const Mesh& mesh, int parts) {
  static_assert(sizeof(SCOTCH_Num) == sizeof(std::int32_t), "Scotch with 32-bit numbers, as distributions build it");
  const Graph dual = dual_graph(mesh);
  std::vector<std::int32_t> part(static_cast<std::size_t>(mesh.cells()), 0);
  SCOTCH_randomSeed(kSeed);
  SCOTCH_randomReset();
  ScotchGraph scotch;
  const bool failed = SCOTCH_graphBuild(&scotch.graph, 0, static_cast<SCOTCH_Num>(mesh.cells()), dual.first.data(),
                                        nullptr, nullptr, nullptr, static_cast<SCOTCH_Num>(dual.neighbours.size()),
                                        dual.neighbours.data(), nullptr) != 0 ||
                      SCOTCH_graphPart(&scotch.graph, parts, &scotch.strategy, part.data()) != 0;
  if (failed) {
    throw RequestError("cells", std::to_string(mesh.cells()), "Scotch failed, and says why on stderr",
                       "give fewer cells, or the partitioner slabs", "machine");
  }
  return part;
}
#else
constexpr auto by_scotch = by_metis;  // never called: partitioner_of refuses
#endif

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
  const auto known = std::find_if(kNames.begin(), kNames.end(), [&](const auto& one) { return one.first == name; });
  if (known == kNames.end()) {
    throw RequestError("partitioner", name, "there is no such partitioner", "known: metis, scotch, slabs");
  }
  if (known->second == Partitioner::scotch && !kHasScotch) {
    throw RequestError("partitioner", name, "Scotch was not installed when this program was built",
                       "as root: apt-get install libscotch-dev; or choose metis", "machine");
  }
  return known->second;
}

std::string name_of(Partitioner partitioner) {
  return std::find_if(kNames.begin(), kNames.end(), [&](const auto& one) { return one.second == partitioner; })->first;
}

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
  const auto of = parts == 1 || partitioner == Partitioner::slabs ? by_slabs
                  : partitioner == Partitioner::scotch            ? by_scotch
                                                                  : by_metis;
  auto part = of(mesh, parts);
  refuse_empty(part, parts);
  return part;
}

}  // namespace elbowroom::diffusion
