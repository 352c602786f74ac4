#include "diffusion/mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
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

// Of the box around a file's mesh, each way: the places by which its cells are ordered.
constexpr int kDivisions = 256;

constexpr std::array<char, 8> kMagic{'E', 'L', 'B', 'M', 'E', 'S', 'H', '1'};

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw RequestError("mesh", path, what, "convert the mesh again: start a new run");
}

template <typename T>
void read_all(std::ifstream& file, const std::string& path, std::vector<T>& values) {
  const auto bytes = static_cast<std::streamsize>(values.size() * sizeof(T));
  if (!file.read(reinterpret_cast<char*>(values.data()), bytes)) {
    refuse(path, "the file of the mesh is cut short");
  }
}

// Every face has the same conductance from both sides, and every cell a volume: what the steps rely on.
void check(const Cells& own, const std::string& path) {
  const auto count = static_cast<CellId>(own.volumes.size());
  for (CellId cell = 0; cell < count; ++cell) {
    const auto at = static_cast<std::size_t>(cell);
    if (!(own.volumes[at] > 0) || !std::isfinite(own.volumes[at])) {
      refuse(path, fmt::format("cell {} has no volume", cell));
    }
    for (std::size_t face = 0; face < kFaces; ++face) {
      const CellId other = own.neighbours[at][face];
      if (other == kWall) {
        continue;
      }
      if (other < 0 || other >= count || !(own.conductances[at][face] > 0)) {
        refuse(path, fmt::format("face {} of cell {} is not that of two cells", face, cell));
      }
      const auto& back = own.neighbours[static_cast<std::size_t>(other)];
      const auto there = std::find(back.begin(), back.end(), cell);
      if (there == back.end() ||
          own.conductances[static_cast<std::size_t>(other)][static_cast<std::size_t>(there - back.begin())] !=
              own.conductances[at][face]) {
        refuse(path, fmt::format("cells {} and {} do not agree on their face", cell, other));
      }
    }
  }
}

Cells read_cells(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 8> magic{};
  std::int64_t count = 0;
  if (!file.read(magic.data(), magic.size()) || magic != kMagic ||
      !file.read(reinterpret_cast<char*>(&count), sizeof count)) {
    refuse(path, "cannot be read as the file of a mesh");
  }
  if (count < 1 || count > kMostCells) {
    refuse(path, fmt::format("a mesh has 1 to {} cells", kMostCells));
  }
  const auto cells = static_cast<std::size_t>(count);
  Cells own{std::vector<std::array<CellId, kFaces>>(cells),
            std::vector<std::array<double, kFaces>>(cells),
            std::vector<double>(cells),
            std::vector<Point>(cells),
            {}};
  read_all(file, path, own.neighbours);
  read_all(file, path, own.conductances);
  read_all(file, path, own.volumes);
  read_all(file, path, own.centres);
  std::vector<double> lengths(3);
  read_all(file, path, lengths);
  std::copy(lengths.begin(), lengths.end(), own.lengths.begin());
  check(own, path);
  return own;
}

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

Mesh Mesh::from_file(const std::string& path) {
  auto own = std::make_shared<const Cells>(read_cells(path));
  Mesh mesh({kDivisions, kDivisions, kDivisions});
  mesh.cells_ = static_cast<std::int64_t>(own->volumes.size());
  mesh.own_ = std::move(own);
  return mesh;
}

double Mesh::length(int axis) const {
  const auto along = static_cast<std::size_t>(axis);
  return own_ ? own_->lengths[along] : edge_ * cubes_[along];
}

double Mesh::volume(CellId cell) const {
  return own_ ? own_->volumes[static_cast<std::size_t>(cell)] : edge_ * edge_ * edge_ / 6;
}

double Mesh::volume() const {
  if (!own_) {
    return length(0) * length(1) * length(2);
  }
  double sum = 0;
  for (const double one : own_->volumes) {
    sum += one;
  }
  return sum;
}

double Mesh::conductance(CellId cell, int face) const {
  const auto at = static_cast<std::size_t>(face);
  return own_ ? own_->conductances[static_cast<std::size_t>(cell)][at] : kConductance[at] * edge_;
}

std::array<int, 3> Mesh::cube(CellId cell) const {
  if (own_) {
    std::array<int, 3> place{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double share = own_->centres[static_cast<std::size_t>(cell)][axis] / own_->lengths[axis];
      place[axis] = std::clamp(static_cast<int>(share * kDivisions), 0, kDivisions - 1);
    }
    return place;
  }
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
  if (own_) {
    return own_->neighbours[static_cast<std::size_t>(cell)];
  }
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
  if (own_) {
    return own_->centres[static_cast<std::size_t>(cell)];
  }
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
