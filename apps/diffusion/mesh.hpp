// The mesh: a box of cubes, each cut into six tetrahedra along the paths of Kuhn and mirrored in its neighbours.
//
// The tetrahedron of a path goes from one corner of its cube to the opposite one along three edges. Since every cube is
// the mirror image of those beside it, the planes of all faces are mirrors of the whole mesh, as in a kaleidoscope: two
// cells that share a face are each other's image in it. So the line between their centres of mass is orthogonal to the face
// and is halved by it, and the flux through a face is consistent when it is taken from the two cells alone (two-point flux,
// K-orthogonal mesh), without any correction. Perturbed vertices would lose that; other cuts of a cube do not have it.
#pragma once

#include <array>
#include <cstdint>

namespace elbowroom::diffusion {

using Point = std::array<double, 3>;
using CellId = std::int64_t;

inline constexpr int kFaces = 4;
inline constexpr CellId kWall = -1;

class Mesh {
 public:
  // `cubes` along x, y and z; edges are 1 / cubes[0] long, so that the box is one long in x. Throws RequestError.
  explicit Mesh(const std::array<int, 3>& cubes);
  // The box with as many cubes each way whose number of cells is nearest to `cells`; an even number of cubes each way.
  static Mesh nearest(std::int64_t cells);

  const std::array<int, 3>& cubes() const { return cubes_; }
  std::int64_t cells() const { return cells_; }
  double edge() const { return edge_; }
  double length(int axis) const;
  double volume() const { return edge_ * edge_ * edge_ / 6; }  // of a cell: all are congruent

  // Cells beyond the four faces, kWall for a face on the wall of the box. Always in the same order of faces.
  std::array<CellId, kFaces> neighbours(CellId cell) const;
  // Area of a face over the distance between the centres of its two cells.
  double conductance(int face) const;
  Point centre(CellId cell) const;  // of mass
  std::array<int, 3> cube(CellId cell) const;

 private:
  CellId cell_in(const std::array<int, 3>& cube, int path) const;

  std::array<int, 3> cubes_;
  std::int64_t cells_;
  double edge_;
};

}  // namespace elbowroom::diffusion
