// The inner loop: one explicit step of a range of cells. Compiled once per instruction set; run-time dispatch picks one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "diffusion/mesh.hpp"
#include "diffusion/part.hpp"

namespace elbowroom::diffusion {

// The matrix rows of eight cells, one after the other in memory: a sweep reads a single stream besides the field.
struct alignas(64) Slice {
  std::array<std::array<std::int32_t, kSlice>, kFaces> neighbour;  // by face; a cell's own slot at a wall
  std::array<std::array<double, kSlice>, kFaces> weight;           // dt x conductance of the face / volume; 0 at a wall
};

// next[c] = old[c] + sum over faces of weight x (old[neighbour] - old[c]) for the cells of slices first to last - 1. The
// order of the operations depends on nothing but the faces' order, so that a cell's value is the same to the last bit
// whoever computes it.
void sweep(const Slice* slices, const double* old, double* next, std::size_t first, std::size_t last);

// The same for one cell, without vectors: what a sweep is checked against (the last bits may differ, fused or not).
double swept(const Slice* slices, const double* old, std::size_t cell);

// Bytes that a sweep must move for one cell (algorithmic): its row, its old value and its new one.
inline constexpr double kCellBytes = static_cast<double>(sizeof(Slice)) / kSlice + 2 * sizeof(double);
// Additions and multiplications for one cell.
inline constexpr double kCellFlops = 3.0 * kFaces;

}  // namespace elbowroom::diffusion
