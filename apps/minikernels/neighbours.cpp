// Exchanges between neighbours in a box of ranks whose opposite faces meet.
#include <array>

#include "minikernels/kernels.hpp"

namespace elbowroom::minikernels {
namespace {

constexpr int kDirections = 3;
constexpr int kLevels = 5;
constexpr std::size_t kWord = 8;  // bytes

class Box {
 public:
  explicit Box(const Exchange& exchange) : rank_(exchange.rank()) {
    MPI_Dims_create(exchange.size(), kDirections, lengths_.data());
  }

  bool is_flat(int direction) const { return lengths_[static_cast<std::size_t>(direction)] == 1; }

  // The last direction's neighbours have neighbouring ranks.
  int neighbour(int direction, int offset) const {
    int stride = 1;
    for (int other = kDirections - 1; other > direction; --other) {
      stride *= lengths_[static_cast<std::size_t>(other)];
    }
    const int length = lengths_[static_cast<std::size_t>(direction)];
    const int place = rank_ / stride % length;
    return rank_ + ((place + offset + length) % length - place) * stride;
  }

 private:
  int rank_;
  std::array<int, kDirections> lengths_{};
};

// To both neighbours of a direction.
void halo(Exchange& exchange, const Box& box, int direction, std::size_t bytes) {
  if (!box.is_flat(direction)) {
    const int before = box.neighbour(direction, -1);
    const int after = box.neighbour(direction, 1);
    exchange.send_and_receive(after, before, bytes);
    exchange.send_and_receive(before, after, bytes);
  }
}

}  // namespace

void faces(const Step& step, int stages) {
  const Box box(step.exchange);
  for (int direction = 0; direction < kDirections; ++direction) {
    for (int stage = 0; stage < stages; ++stage) {
      step.computation.run(step.seconds / (kDirections * stages));
      halo(step.exchange, box, direction, step.size);
    }
  }
}

// From the finest level to the coarsest one and back, and a norm.
void levels(const Step& step) {
  const Box box(step.exchange);
  // A level has an eighth of the cells of the one above, and is visited twice.
  double cells = 0;
  for (int level = 0; level < kLevels; ++level) {
    cells += 2.0 / static_cast<double>(1 << (3 * level));
  }
  for (int visit = 0; visit < 2 * kLevels; ++visit) {
    const int level = visit < kLevels ? visit : 2 * kLevels - 1 - visit;
    step.computation.run(step.seconds / cells / static_cast<double>(1 << (3 * level)));
    const std::size_t bytes = std::max((step.size >> (2 * level)) / kWord * kWord, kWord);
    for (int direction = 0; direction < kDirections; ++direction) {
      halo(step.exchange, box, direction, bytes);
    }
  }
  step.exchange.sum(1);
}

}  // namespace elbowroom::minikernels
