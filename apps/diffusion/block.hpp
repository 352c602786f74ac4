// One rank's cells in memory: the rows of the matrix and two copies of the field, the old values and the new ones.
#pragma once

#include <cstdint>
#include <vector>

#include "diffusion/medium.hpp"
#include "diffusion/mesh.hpp"
#include "diffusion/part.hpp"
#include "diffusion/sweep.hpp"
#include "machine/machine.hpp"

namespace elbowroom::diffusion {

// The longest time step with which no value leaves the range of its neighbours' (explicit Euler: no weights sum to more
// than 1).
double longest_step(const Mesh& mesh, const Medium& medium);

class Block {
 public:
  // Memory on NUMA node `node`, untouched until fill() and begin(). Throws std::runtime_error when there is not enough.
  Block(const Mesh& mesh, const Medium& medium, Part part, int node);

  // Writes the rows of some slices for time steps of `dt`; `place` as places() tells.
  void fill(const std::vector<std::int32_t>& place, double dt, std::size_t first, std::size_t last);
  // Writes the values of the known solution at time 0 into both copies of slots first to last - 1 (ghosts follow the slots).
  void begin(std::size_t first, std::size_t last);

  const Part& part() const { return part_; }
  const Slice* slices() const { return static_cast<const Slice*>(rows_.data()); }
  std::size_t slice_count() const { return static_cast<std::size_t>(part_.own()) / kSlice; }
  double* field(std::int64_t step) const;  // values after `step` steps
  PageReport pages() const { return rows_.verify(rows_.size()); }

  // Sum of value x volume over this rank's cells.
  double integral(std::int64_t step) const;
  // Of the values' bits and the cells' numbers: the same whichever rank has a cell, and wherever it lies.
  std::uint64_t checksum(std::int64_t step) const;
  // Sum of squares x volume, and largest magnitude, of the difference from the known solution at `time`.
  struct Error {
    double squares = 0;
    double largest = 0;
  };
  Error error(std::int64_t step, double time) const;
  // Whether all values of `step` are what a plain loop computes from those before.
  bool follows(std::int64_t step) const;

 private:
  CellId cell_at(std::size_t slot) const;

  const Mesh& mesh_;
  const Medium& medium_;
  Part part_;
  Arena rows_;
  Arena fields_;
  std::size_t stride_;  // doubles from one copy of the field to the other
};

}  // namespace elbowroom::diffusion
