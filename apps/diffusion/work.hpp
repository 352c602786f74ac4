// What the computing threads of a rank run: the diffusion, or TRIAD beside which it is judged.
#pragma once

#include <cstdint>
#include <vector>

#include "diffusion/block.hpp"
#include "machine/machine.hpp"

namespace elbowroom::diffusion {

// What one computing thread does in a step. Called by all computing threads at once.
class Work {
 public:
  virtual ~Work() = default;
  virtual void separator(std::size_t thread, std::int64_t step) = 0;
  virtual void interior(std::size_t thread, std::int64_t step) = 0;
};

// Items first to last - 1 of `count` for one of `threads` threads: equal shares, one behind the other.
struct Share {
  std::size_t first;
  std::size_t last;
};
Share share(std::size_t count, std::size_t thread, std::size_t threads);

class Diffusion final : public Work {
 public:
  Diffusion(Block& block, std::size_t threads) : block_(block), threads_(threads) {}
  // Each thread writes the rows and values that it will work on, so that it is their first user. Thread 0 adds the ghosts.
  void fill(std::size_t thread, const std::vector<std::int32_t>& place, double dt);
  void begin(std::size_t thread);
  void separator(std::size_t thread, std::int64_t step) override;
  void interior(std::size_t thread, std::int64_t step) override;

 private:
  std::size_t separator_slices() const { return static_cast<std::size_t>(block_.part().separator) / kSlice; }
  Share separator_share(std::size_t thread) const;
  Share interior_share(std::size_t thread) const;

  Block& block_;
  std::size_t threads_;
};

// STREAM's TRIAD on as many bytes as the diffusion moves in a step, shared out among the same threads, all in `interior`.
class Triad final : public Work {
 public:
  // Throws std::runtime_error when there is not enough memory.
  Triad(double bytes, std::size_t threads, int node);
  void fill(std::size_t thread);
  void separator(std::size_t, std::int64_t) override {}
  void interior(std::size_t thread, std::int64_t step) override;
  double bytes() const;  // algorithmic, in a step
  bool valid() const;    // whether the result is there

 private:
  double* array(std::size_t thread, int which) const;

  std::size_t length_;  // of each of the three arrays of a thread
  std::size_t threads_;
  Arena memory_;
};

}  // namespace elbowroom::diffusion
