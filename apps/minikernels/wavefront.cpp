// Sweeps over planes, from one corner of a grid of ranks to the opposite one and back: a rank computes its part of a plane
// when those before it have.
#include <array>

#include "minikernels/kernels.hpp"

namespace elbowroom::minikernels {
namespace {

constexpr int kPlanes = 40;
constexpr std::size_t kNorms = 5;

class Grid {
 public:
  explicit Grid(const Exchange& exchange) {
    MPI_Dims_create(exchange.size(), 2, lengths_.data());
    row_ = exchange.rank() / lengths_[1];
    column_ = exchange.rank() % lengths_[1];
  }

  // -1 beyond the grid's edges.
  int neighbour(int rows, int columns) const {
    const int row = row_ + rows;
    const int column = column_ + columns;
    const bool inside = row >= 0 && row < lengths_[0] && column >= 0 && column < lengths_[1];
    return inside ? row * lengths_[1] + column : -1;
  }

 private:
  std::array<int, 2> lengths_{};
  int row_;
  int column_;
};

// `way`: 1 towards the last rank, -1 back.
void sweep(const Step& step, const Grid& grid, int way) {
  for (int plane = 0; plane < kPlanes; ++plane) {
    for (const int before : {grid.neighbour(-way, 0), grid.neighbour(0, -way)}) {
      if (before >= 0) {
        step.exchange.receive(before, step.size);
      }
    }
    step.computation.run(step.seconds / (2 * kPlanes));
    for (const int after : {grid.neighbour(way, 0), grid.neighbour(0, way)}) {
      if (after >= 0) {
        step.exchange.send(after, step.size);
      }
    }
  }
}

}  // namespace

void wavefronts(const Step& step) {
  const Grid grid(step.exchange);
  sweep(step, grid, 1);
  sweep(step, grid, -1);
  step.exchange.sum(kNorms);
}

}  // namespace elbowroom::minikernels
