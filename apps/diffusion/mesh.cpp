#include "diffusion/mesh.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "protocol/request.hpp"

namespace elbowroom::diffusion {
namespace {

constexpr int kPaths = 6;

// A path goes along these axes, one after the other. In the cube's own coordinates (0 at the corner where all its paths
// begin, 1 at the opposite one) its tetrahedron is 1 >= x[first] >= x[second] >= x[third] >= 0. Paths beside each other in
// this list, the last and the first included, share a face.
constexpr std::array<std::array<int, 3>, kPaths> kAxes{
    {{{0, 1, 2}}, {{1, 0, 2}}, {{1, 2, 0}}, {{2, 1, 0}}, {{2, 0, 1}}, {{0, 2, 1}}}};

// The path with its first two axes exchanged, and with its last two.
constexpr std::array<int, kPaths> kFirstExchanged{1, 0, 3, 2, 5, 4};
constexpr std::array<int, kPaths> kLastExchanged{5, 2, 1, 4, 3, 0};

// The centre of mass along the first, second and third axis, in edges: the mean of the corners 000, 100, 110, 111.
constexpr std::array<double, 3> kCentre{0.75, 0.5, 0.25};

// Faces in the order of neighbours(): x[first] = 1, x[third] = 0, x[first] = x[second], x[second] = x[third]. The first two
// have area 1/2 and centres 1/2 apart; the others 1/sqrt(2) and 1/(2 sqrt(2)).
constexpr std::array<double, kFaces> kConductance{1, 1, 2, 2};

// Where METIS counts faces by 32 bits, four for each cell.
constexpr std::int64_t kMostCells = std::numeric_limits<std::int32_t>::max() / kFaces;

}  // namespace

Mesh::Mesh(const std::array<int, 3>& cubes) : cubes_(cubes), cells_(kPaths), edge_(0) {
  for (const int count : cubes) {
    if (count < 1) {
      throw RequestError("resolution", std::to_string(count), "a box has at least one cube each way", "give 1 or more");
    }
    if (cells_ > kMostCells / count) {
      throw RequestError("resolution", fmt::format("{},{},{}", cubes[0], cubes[1], cubes[2]),
                         fmt::format("a mesh has {} cells at most", kMostCells), "give fewer cubes");
    }
    cells_ *= count;
  }
  edge_ = 1.0 / cubes[0];
}

Mesh Mesh::nearest(std::int64_t cells) {
  if (cells < kPaths || cells > kMostCells) {
    throw RequestError("cells", std::to_string(cells), fmt::format("a mesh has {} to {} cells", kPaths, kMostCells),
                       "give another number of cells");
  }
  const double pairs = std::cbrt(static_cast<double>(cells) / kPaths) / 2;
  const int count = std::max(1, static_cast<int>(std::lround(pairs))) * 2;
  return Mesh({count, count, count});
}

double Mesh::length(int axis) const { return edge_ * cubes_[static_cast<std::size_t>(axis)]; }
double Mesh::conductance(int face) const { return kConductance[static_cast<std::size_t>(face)] * edge_; }

std::array<int, 3> Mesh::cube(CellId cell) const {
  const CellId number = cell / kPaths;
  return {static_cast<int>(number / cubes_[2] / cubes_[1]), static_cast<int>(number / cubes_[2] % cubes_[1]),
          static_cast<int>(number % cubes_[2])};
}

CellId Mesh::cell_in(const std::array<int, 3>& cube, int path) const {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (cube[axis] < 0 || cube[axis] >= cubes_[axis]) {
      return kWall;
    }
  }
  return ((static_cast<CellId>(cube[0]) * cubes_[1] + cube[1]) * cubes_[2] + cube[2]) * kPaths + path;
}

std::array<CellId, kFaces> Mesh::neighbours(CellId cell) const {
  const auto path = static_cast<std::size_t>(cell % kPaths);
  const std::array<int, 3> here = cube(cell);
  // Cubes with an odd place along an axis are mirrored: their own coordinate runs the other way.
  const auto towards = [&](int axis, bool end) {
    std::array<int, 3> there = here;
    const auto along = static_cast<std::size_t>(axis);
    there[along] += (here[along] % 2 == 0) == end ? 1 : -1;
    return there;
  };
  return {cell_in(towards(kAxes[path][0], true), static_cast<int>(path)),
          cell_in(towards(kAxes[path][2], false), static_cast<int>(path)), cell_in(here, kFirstExchanged[path]),
          cell_in(here, kLastExchanged[path])};
}

Point Mesh::centre(CellId cell) const {
  const auto path = static_cast<std::size_t>(cell % kPaths);
  const std::array<int, 3> here = cube(cell);
  Point point{};
  for (std::size_t step = 0; step < 3; ++step) {
    const auto axis = static_cast<std::size_t>(kAxes[path][step]);
    const double own = here[axis] % 2 == 0 ? kCentre[step] : 1 - kCentre[step];
    point[axis] = (here[axis] + own) * edge_;
  }
  return point;
}

}  // namespace elbowroom::diffusion
