#include "diffusion/block.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace elbowroom::diffusion {
namespace {

constexpr std::size_t kPage = 512;  // doubles: copies of the field start on pages of their own

// Between two cells whose centres are equally far from their face: both halves of the way in series.
double between(double one, double other) { return 2 / (1 / one + 1 / other); }

// Spreads all bits over all others (the finaliser of SplitMix64; Steele, Lea, Flood 2014).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Fused and separate rounding of one step differ by some units in the last place of the terms.
constexpr double kRounding = 16 * std::numeric_limits<double>::epsilon();

}  // namespace

double longest_step(const Mesh& mesh, const Medium& medium) {
  // Cells of a box are congruent.
  double longest = std::numeric_limits<double>::infinity();
  for (CellId cell = 0; cell < (mesh.regular() ? 1 : mesh.cells()); ++cell) {
    double conductances = 0;
    for (int face = 0; face < kFaces; ++face) {
      conductances += mesh.conductance(cell, face);
    }
    longest = std::min(longest, mesh.volume(cell) / conductances);
  }
  return longest / std::max(medium.kappas()[0], medium.kappas()[1]);
}

Block::Block(const Mesh& mesh, const Medium& medium, Part part, int node)
    : mesh_(mesh),
      medium_(medium),
      part_(std::move(part)),
      rows_(slice_count() * sizeof(Slice), node),
      stride_((static_cast<std::size_t>(part_.all()) + kPage - 1) / kPage * kPage) {
  fields_ = Arena(2 * stride_ * sizeof(double), node);
}

double* Block::field(std::int64_t step) const {
  return static_cast<double*>(fields_.data()) + (step % 2 == 0 ? 0 : stride_);
}

CellId Block::cell_at(std::size_t slot) const {
  return slot < part_.slots.size() ? part_.slots[slot] : part_.ghosts[slot - part_.slots.size()];
}

void Block::fill(const std::vector<std::int32_t>& place, double dt, std::size_t first, std::size_t last) {
  auto* rows = static_cast<Slice*>(rows_.data());
  for (std::size_t slot = first * kSlice; slot < last * kSlice; ++slot) {
    Slice& slice = rows[slot / kSlice];
    const std::size_t lane = slot % kSlice;
    const CellId cell = part_.slots[slot];
    const auto neighbours =
        cell == kNoCell ? std::array<CellId, kFaces>{kWall, kWall, kWall, kWall} : mesh_.neighbours(cell);
    for (std::size_t face = 0; face < kFaces; ++face) {
      const CellId other = neighbours[face];
      slice.neighbour[face][lane] = static_cast<std::int32_t>(slot);
      slice.weight[face][lane] = 0;
      if (other != kWall) {
        const double kappa = between(medium_.kappa(mesh_.centre(cell)), medium_.kappa(mesh_.centre(other)));
        slice.neighbour[face][lane] = place[static_cast<std::size_t>(other)];
        slice.weight[face][lane] = dt * kappa * mesh_.conductance(cell, static_cast<int>(face)) / mesh_.volume(cell);
      }
    }
  }
}

void Block::begin(std::size_t first, std::size_t last) {
  for (std::size_t slot = first; slot < last; ++slot) {
    const CellId cell = cell_at(slot);
    const double value = cell == kNoCell ? 0 : medium_.exact(mesh_.centre(cell), 0);
    field(0)[slot] = value;
    field(1)[slot] = value;
  }
}

double Block::integral(std::int64_t step) const {
  double sum = 0;
  for (std::size_t slot = 0; slot < part_.slots.size(); ++slot) {
    sum += part_.slots[slot] == kNoCell ? 0 : field(step)[slot] * mesh_.volume(part_.slots[slot]);
  }
  return sum;
}

std::uint64_t Block::checksum(std::int64_t step) const {
  std::uint64_t sum = 0;
  for (std::size_t slot = 0; slot < part_.slots.size(); ++slot) {
    if (part_.slots[slot] != kNoCell) {
      const auto bits = std::bit_cast<std::uint64_t>(field(step)[slot]);
      sum += mixed(bits ^ mixed(static_cast<std::uint64_t>(part_.slots[slot])));
    }
  }
  return sum;
}

Block::Error Block::error(std::int64_t step, double time) const {
  Error error;
  for (std::size_t slot = 0; slot < part_.slots.size(); ++slot) {
    if (part_.slots[slot] != kNoCell) {
      const double off = field(step)[slot] - medium_.exact(mesh_.centre(part_.slots[slot]), time);
      error.squares += off * off * mesh_.volume(part_.slots[slot]);
      error.largest = std::max(error.largest, std::abs(off));
    }
  }
  return error;
}

bool Block::follows(std::int64_t step) const {
  const double* old = field(step - 1);
  const double* now = field(step);
  for (std::size_t slot = 0; slot < part_.slots.size(); ++slot) {
    // Negated, so that a value that is not a number is seen.
    if (part_.slots[slot] != kNoCell &&
        !(std::abs(now[slot] - swept(slices(), old, slot)) <= kRounding * (1 + std::abs(old[slot])))) {
      return false;
    }
  }
  return true;
}

}  // namespace elbowroom::diffusion
