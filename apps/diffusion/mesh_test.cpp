#include "diffusion/mesh.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "protocol/request.hpp"

namespace elbowroom::diffusion {
namespace {

double distance(const Point& a, const Point& b) { return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]); }

// Whether a plane {110} or {100} halves the way between two centres at a right angle: two of the coordinates are exchanged
// (or exchanged and mirrored), or one is mirrored.
bool mirrored(const Point& a, const Point& b) {
  int different = 0;
  double sum = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double step = std::abs(a[axis] - b[axis]);
    different += step > 1e-12 ? 1 : 0;
    sum += step;
  }
  return different == 1 || (different == 2 && std::abs(sum - std::sqrt(2) * distance(a, b)) < 1e-12);
}

TEST_CASE("neighbours are mutual, through the same face, and never the cell itself") {
  const Mesh mesh({3, 4, 2});
  for (CellId cell = 0; cell < mesh.cells(); ++cell) {
    const auto neighbours = mesh.neighbours(cell);
    for (std::size_t face = 0; face < kFaces; ++face) {
      if (neighbours[face] != kWall) {
        REQUIRE(neighbours[face] != cell);
        REQUIRE(mesh.neighbours(neighbours[face])[face] == cell);
      }
    }
  }
}

TEST_CASE("a cell and its neighbour are mirror images in their face, as far apart as the conductance says") {
  const Mesh mesh({3, 2, 4});
  const double edge = mesh.edge();
  // Areas of the four faces of the path 000, 100, 110, 111.
  const std::array<double, kFaces> area{0.5 * edge * edge, 0.5 * edge * edge, std::sqrt(0.5) * edge * edge,
                                        std::sqrt(0.5) * edge * edge};
  for (CellId cell = 0; cell < mesh.cells(); ++cell) {
    const auto neighbours = mesh.neighbours(cell);
    for (std::size_t face = 0; face < kFaces; ++face) {
      if (neighbours[face] != kWall) {
        const Point here = mesh.centre(cell);
        const Point there = mesh.centre(neighbours[face]);
        REQUIRE(mirrored(here, there));
        REQUIRE(mesh.conductance(cell, static_cast<int>(face)) == doctest::Approx(area[face] / distance(here, there)));
      }
    }
  }
}

TEST_CASE("walls are as large as the box: each of its six sides is covered by two faces of each cube there") {
  const Mesh mesh({3, 4, 2});
  int walls = 0;
  for (CellId cell = 0; cell < mesh.cells(); ++cell) {
    for (const CellId neighbour : mesh.neighbours(cell)) {
      walls += neighbour == kWall ? 1 : 0;
    }
  }
  CHECK(walls == 2 * 2 * (3 * 4 + 4 * 2 + 3 * 2));
}

TEST_CASE("cells fill the box, and lie in it") {
  const Mesh mesh({3, 4, 2});
  CHECK(static_cast<double>(mesh.cells()) * mesh.volume(0) ==
        doctest::Approx(mesh.length(0) * mesh.length(1) * mesh.length(2)));
  std::set<Point> centres;
  for (CellId cell = 0; cell < mesh.cells(); ++cell) {
    const Point centre = mesh.centre(cell);
    centres.insert(centre);
    for (int axis = 0; axis < 3; ++axis) {
      const double x = centre[static_cast<std::size_t>(axis)];
      REQUIRE((x > 0 && x < mesh.length(axis)));
    }
  }
  CHECK(centres.size() == static_cast<std::size_t>(mesh.cells()));
}

TEST_CASE("the nearest mesh to a number of cells has an even number of cubes each way") {
  CHECK(Mesh::nearest(6 * 1000).cubes() == std::array<int, 3>{10, 10, 10});
  CHECK(Mesh::nearest(6).cubes() == std::array<int, 3>{2, 2, 2});
  CHECK(Mesh::nearest(10'000'000).cubes()[0] % 2 == 0);
}

TEST_CASE("a box without cubes and one that no partitioner could count are refused") {
  CHECK_THROWS_AS(Mesh({4, 0, 4}), RequestError);
  CHECK_THROWS_AS(Mesh({1 << 15, 1 << 15, 1 << 15}), RequestError);
  CHECK_THROWS_AS(Mesh::nearest(5), RequestError);
}

// Two cells that share the face of place 0 of both, as store/meshes.py writes them.
struct TwoCells {
  std::vector<std::array<CellId, kFaces>> neighbours{{1, kWall, kWall, kWall}, {0, kWall, kWall, kWall}};
  std::vector<std::array<double, kFaces>> conductances{{0.5, 0, 0, 0}, {0.5, 0, 0, 0}};
  std::vector<double> volumes{0.25, 0.75};
  std::vector<Point> centres{{0.1, 0.2, 0.3}, {0.9, 0.2, 0.3}};

  std::string write(const std::string& name) const {
    const std::string path = (std::filesystem::temp_directory_path() / name).string();
    std::ofstream file(path, std::ios::binary);
    const std::int64_t count = 2;
    const Point lengths{1, 1, 1};
    file.write("ELBMESH1", 8);
    file.write(reinterpret_cast<const char*>(&count), sizeof count);
    const auto all = [&file](const auto& values) {
      file.write(reinterpret_cast<const char*>(values.data()),
                 static_cast<std::streamsize>(values.size() * sizeof values[0]));
    };
    all(neighbours);
    all(conductances);
    all(volumes);
    all(centres);
    all(lengths);
    return path;
  }
};

TEST_CASE("a mesh of a file has its own neighbours, faces, volumes and centres") {
  const Mesh mesh = Mesh::from_file(TwoCells{}.write("elbowroom-two-cells"));
  CHECK(!mesh.regular());
  CHECK(mesh.cells() == 2);
  CHECK(mesh.neighbours(0)[0] == 1);
  CHECK(mesh.conductance(1, 0) == 0.5);
  CHECK(mesh.volume(1) == 0.75);
  CHECK(mesh.volume() == 1);
  CHECK(mesh.length(2) == 1);
  CHECK(mesh.cube(1)[0] > mesh.cube(0)[0]);
}

TEST_CASE("a file whose cells do not agree, or that is no mesh, is refused") {
  TwoCells cells;
  cells.conductances[1][0] = 0.4;
  CHECK_THROWS_AS(Mesh::from_file(cells.write("elbowroom-two-cells")), RequestError);
  cells = {};
  cells.volumes[0] = 0;
  CHECK_THROWS_AS(Mesh::from_file(cells.write("elbowroom-two-cells")), RequestError);
  cells = {};
  cells.neighbours[0][0] = 7;
  CHECK_THROWS_AS(Mesh::from_file(cells.write("elbowroom-two-cells")), RequestError);
  const std::string path = TwoCells{}.write("elbowroom-two-cells");
  std::filesystem::resize_file(path, 100);
  CHECK_THROWS_AS(Mesh::from_file(path), RequestError);
  CHECK_THROWS_AS(Mesh::from_file("/nowhere/mesh"), RequestError);
}

}  // namespace
}  // namespace elbowroom::diffusion
