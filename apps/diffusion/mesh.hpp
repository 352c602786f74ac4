// The mesh: a box of cubes, each cut into six tetrahedra along the paths of Kuhn and mirrored in its neighbours.
//
// The tetrahedron of a path goes from one corner of its cube to the opposite one along three edges. Since every cube is
// the mirror image of those beside it, the planes of all faces are mirrors of the whole mesh, as in a kaleidoscope: two
// cells that share a face are each other's image in it. So the line between their centres of mass is orthogonal to the face
// and is halved by it, and the flux through a face is consistent when it is taken from the two cells alone (two-point flux,
// K-orthogonal mesh), without any correction. Perturbed vertices would lose that; other cuts of a cube do not have it.
//
// Or a mesh of tetrahedra from a file, of any shape: its fluxes are taken from two cells too, which there is an
// approximation. What is sent and computed in a step is that of the mesh.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace elbowroom::diffusion {

using Point = std::array<double, 3>;
using CellId = std::int64_t;

inline constexpr int kFaces = 4;
inline constexpr CellId kWall = -1;

// A mesh of a file, as store/meshes.py writes it: of each cell its neighbours, conductances of its faces, volume and
// centre; cells by their place along x.
struct Cells {
  std::vector<std::array<CellId, kFaces>> neighbours;
  std::vector<std::array<double, kFaces>> conductances;
  std::vector<double> volumes;
  std::vector<Point> centres;
  Point lengths{};  // of the box around them, from the origin
};

class Mesh {
 public:
  // `cubes` along x, y and z; edges are 1 / cubes[0] long, so that the box is one long in x. Throws RequestError.
  explicit Mesh(const std::array<int, 3>& cubes);
  // The box with as many cubes each way whose number of cells is nearest to `cells`; an even number of cubes each way.
  static Mesh nearest(std::int64_t cells);
  // The mesh of a file. Throws RequestError for a file that is none.
  static Mesh from_file(const std::string& path);

  bool regular() const { return own_ == nullptr; }  // a box of cubes

  const std::array<int, 3>& cubes() const { return cubes_; }
  std::int64_t cells() const { return cells_; }
  double edge() const { return edge_; }
  double length(int axis) const;
  double volume(CellId cell) const;
  double volume() const;  // of all cells

  // Cells beyond the four faces, kWall for a face on the wall of the box. Always in the same order of faces.
  std::array<CellId, kFaces> neighbours(CellId cell) const;
  // Area of a face over the distance between the centres of its two cells.
  double conductance(CellId cell, int face) const;
  Point centre(CellId cell) const;             // of mass
  std::array<int, 3> cube(CellId cell) const;  // of a file's mesh, as if the box around it were divided into cubes

 private:
  CellId cell_in(const std::array<int, 3>& cube, int path) const;

  std::array<int, 3> cubes_;
  std::int64_t cells_;
  double edge_;
  std::shared_ptr<const Cells> own_;
};

}  // namespace elbowroom::diffusion
