// What both algorithms offer to whoever measures them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine.hpp"
#include "kernels/problem.hpp"
#include "machine/machine.hpp"

namespace elbowroom::kernels {

struct Outcome {
  std::size_t iterations = 0;  // done
  std::string failure;         // why there is no result; empty when there is one
};

// How right the result is, on all ranks alike.
struct Checked {
  double residual =
      0;  // CG: ||b - A x|| / ||b||; product: the largest |C z - A (B z)| over its bound, for a vector of signs z
  double error =
      0;  // CG: ||x - x*|| / ||x*||, x* being the solution that b was made of; product: ||C z - A B z|| / ||A B z||
  double checksum = 0;  // of the result, times a vector of signs: two builds agree on it to rounding
  bool holds = false;
};

// What one run of one rank is, counted and not measured.
struct Counts {
  double product_flops = 0;
  double vector_flops = 0;
  double bytes = 0;  // that tasks read and write, were every operand fetched from memory once in each task

  double flops() const { return product_flops + vector_flops; }
};

class Algorithm {
 public:
  virtual ~Algorithm() = default;
  // Writes matrices and right sides; in a run of the engine that computes, before all else.
  virtual void fill() = 0;
  // One solution, or as many products; in a run of the engine. Where not all is done (Mode), there are as many iterations.
  virtual Outcome run(std::size_t iterations) = 0;
  // Of the last run in Mode::all. Collective, not in a run of the engine.
  virtual Checked check(const Job& job) const = 0;
  // What thread `thread` of `threads` has of the products of one iteration, one call of the BLAS after the other in a plain
  // loop: what the tasks' rate is held against. Where messages would bring blocks there are those of the last whole run.
  virtual void plain(std::size_t thread, std::size_t threads) = 0;
  virtual Counts counts(std::size_t iterations) const = 0;
  // This rank's part of the result, row by row.
  virtual std::vector<double> result() const = 0;
  // Pages of what is computed with, and of what travels.
  virtual std::vector<PageReport> comp_pages() const = 0;
  virtual std::vector<PageReport> comm_pages() const = 0;
};

// Rank `rank`'s part of a problem, its memory on these nodes. Throws std::runtime_error when there is not enough.
std::unique_ptr<Algorithm> make_algorithm(const Problem& problem, const Rows& rows, std::size_t rank, int comp_node,
                                          int comm_node, Engine& engine);

// 1 or -1, by chance: what results are multiplied with to be checked.
double sign(const Problem& problem, std::size_t index);

// A vector of which each rank has its block rows, on all ranks. Collective.
std::vector<double> whole(const Job& job, const Rows& rows, std::size_t block, const std::vector<double>& own);
// The sum, and the largest, of all ranks'. Collective.
double summed(const Job& job, double own);
double largest(const Job& job, double own);

}  // namespace elbowroom::kernels
