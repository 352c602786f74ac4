#include "kernels/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "kernels/sparse.hpp"

namespace elbowroom::kernels {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<const char*, Task>, 3> kTasks{
    {{"cg", Task::cg}, {"cg-sparse", Task::cg_sparse}, {"gemm", Task::gemm}}};
constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();  // columns are 32 bits, as MPI's counts
constexpr double kVectors = 6;                                            // of CG: x, r, p, q, right side, solution

Task task_of(const json& program) {
  const json name = program.value("task", json());
  for (const auto& [known, task] : kTasks) {
    if (name == known) {
      return task;
    }
  }
  throw RequestError("task", name.is_string() ? name.get<std::string>() : name.dump(), "there is no such task",
                     "known: cg, cg-sparse, gemm");
}

std::size_t whole(const json& program, const char* key) {
  const json value = program.value(key, json());
  if (!value.is_number_integer() || value < 1 || value > kMost) {
    throw RequestError(key, value.dump(), fmt::format("{} is a whole number from 1 to {}", key, kMost),
                       fmt::format("give {}", key));
  }
  return value.get<std::size_t>();
}

// The neighbours of a block size among the divisors of the order.
std::string divisors_near(std::size_t order, std::size_t block) {
  std::size_t below = std::min(block, order);
  while (order % below != 0) {
    --below;
  }
  std::size_t above = std::min(block, order);
  while (order % above != 0) {
    ++above;
  }
  return below == above ? std::to_string(below) : fmt::format("{} or {}", below, above);
}

double number(const json& program, const char* key, double otherwise) {
  const json value = program.value(key, json());
  if (value.is_null()) {
    return otherwise;
  }
  if (!value.is_number()) {
    throw RequestError(key, value.dump(), fmt::format("{} is a number", key), "leave it out");
  }
  return value.get<double>();
}

}  // namespace

std::string name_of(Task task) {
  const auto* entry =
      std::find_if(kTasks.begin(), kTasks.end(), [task](const auto& known) { return known.second == task; });
  return entry->first;
}

Problem read_problem(const json& program) {
  Problem problem;
  problem.task = task_of(program);
  problem.order = whole(program, "order");
  problem.block = whole(program, "block");
  problem.iterations = whole(program, "iterations");
  problem.shift = number(program, "shift", problem.shift);
  if (program.contains("seed")) {
    problem.seed = whole(program, "seed");
  }
  if (problem.order % problem.block != 0) {
    throw RequestError("block", std::to_string(problem.block),
                       fmt::format("does not divide the order {}", problem.order),
                       "for instance " + divisors_near(problem.order, problem.block));
  }
  return problem;
}

std::size_t Rows::owner(std::size_t row) const {
  std::size_t rank = row * ranks / blocks;
  while (row >= last(rank)) {
    ++rank;
  }
  return rank;
}

std::vector<std::size_t> turns(const Rows& rows) {
  std::vector<std::size_t> order;
  for (std::size_t turn = 0; order.size() < rows.blocks; ++turn) {
    for (std::size_t rank = 0; rank < rows.ranks; ++rank) {
      if (rows.first(rank) + turn < rows.last(rank)) {
        order.push_back(rows.first(rank) + turn);
      }
    }
  }
  return order;
}

Rows rows_of(const Problem& problem, std::size_t ranks) {
  if (problem.order < ranks) {
    throw RequestError("order", std::to_string(problem.order), fmt::format("{} ranks need a row each", ranks),
                       fmt::format("give at least {}", ranks));
  }
  if (problem.blocks() < ranks) {
    throw RequestError("block", std::to_string(problem.block),
                       fmt::format("{} rows of blocks leave some of {} ranks without", problem.blocks(), ranks),
                       fmt::format("give at most {}", problem.order / ranks));
  }
  return {problem.blocks(), ranks};
}

double bytes_of(const Problem& problem, const Rows& rows) {
  const auto order = static_cast<double>(problem.order);
  const auto most = static_cast<double>((rows.blocks + rows.ranks - 1) / rows.ranks * problem.block);
  switch (problem.task) {
    case Task::cg: return sizeof(double) * (most * order + kVectors * order);
    case Task::cg_sparse: return most * kSparseRowBytes + sizeof(double) * kVectors * order;
    case Task::gemm: return sizeof(double) * (2 * most + order) * order;  // A and C, all of B
  }
  return 0;
}

}  // namespace elbowroom::kernels
