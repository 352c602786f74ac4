// What is computed: the matrix, its blocks, and which rank has which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/request_error.hpp"
#include "common/uniform.hpp"

namespace elbowroom::kernels {

enum class Task { cg, cg_sparse, gemm };

std::string name_of(Task task);  // as plans call it: cg, cg-sparse, gemm

struct Problem {
  Task task = Task::cg;
  std::size_t order = 0;       // rows of the whole matrix
  std::size_t block = 0;       // rows of a block, and columns of a dense one
  std::size_t iterations = 1;  // of CG at most; how often a product is made
  double shift = 0;            // taken off the diagonal: a large one makes a matrix that is not positive definite
  std::uint64_t seed = 1;

  std::size_t blocks() const { return order / block; }  // on a side
};

// Reads `program` of the settings; throws RequestError: unknown task, a key that is missing or of another type, not whole,
// below 1, or a block that does not divide the order.
Problem read_problem(const nlohmann::json& program);

// Block rows of each rank: contiguous, as equal as they can be.
struct Rows {
  std::size_t blocks = 0;
  std::size_t ranks = 1;

  std::size_t first(std::size_t rank) const { return blocks * rank / ranks; }
  std::size_t last(std::size_t rank) const { return first(rank + 1); }
  std::size_t owner(std::size_t row) const;
};

// Block rows in turns: the first of each rank, the second of each rank ...
std::vector<std::size_t> turns(const Rows& rows);

// Throws RequestError when a rank would have no rows.
Rows rows_of(const Problem& problem, std::size_t ranks);

// Bytes that the rank with most of them allocates. Nothing overflows: orders of 2^31 are counted, not allocated.
double bytes_of(const Problem& problem, const Rows& rows);

using program::uniform;

}  // namespace elbowroom::kernels
