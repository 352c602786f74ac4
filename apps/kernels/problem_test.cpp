#include "kernels/problem.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "kernels/dense.hpp"
#include "kernels/matrix.hpp"
#include "kernels/meter.hpp"
#include "kernels/sparse.hpp"

namespace elbowroom::kernels {
namespace {

using nlohmann::json;

json program(const char* task = "cg") { return {{"task", task}, {"order", 120}, {"block", 10}, {"iterations", 9}}; }

std::string refused(const char* key, const json& value) {
  json changed = program();
  changed[key] = value;
  try {
    read_problem(changed);
  } catch (const RequestError& error) {
    return error.field + ": " + error.hint;
  }
  return "";
}

TEST_CASE("a problem is read, and what it cannot be is refused by the name of its key") {
  const Problem problem = read_problem(program("cg-sparse"));
  CHECK(problem.task == Task::cg_sparse);
  CHECK(problem.blocks() == 12);
  CHECK(refused("task", "lu") == "task: known: cg, cg-sparse, gemm");
  CHECK(refused("block", 7) == "block: for instance 6 or 8");
  CHECK(refused("block", 0) == "block: give block");
  CHECK(refused("block", 2.5) == "block: give block");
  CHECK(refused("iterations", 0) == "iterations: give iterations");
  CHECK(refused("order", json()) == "order: give order");
  CHECK(refused("order", 1LL << 40) == "order: give order");
  CHECK(refused("shift", "much") == "shift: leave it out");
}

TEST_CASE("every block row has one owner, and no rank is left without") {
  for (const std::size_t ranks : {1, 2, 3, 5, 12}) {
    const Rows rows = rows_of(read_problem(program()), ranks);
    for (std::size_t row = 0; row < rows.blocks; ++row) {
      const std::size_t owner = rows.owner(row);
      CHECK(rows.first(owner) <= row);
      CHECK(row < rows.last(owner));
    }
  }
  CHECK_THROWS_AS(rows_of(read_problem(program()), 13), RequestError);
  CHECK_THROWS_AS(rows_of(read_problem(program()), 121), RequestError);
}

TEST_CASE("block rows of all ranks take turns, each once") {
  CHECK(turns({5, 2}) == std::vector<std::size_t>{0, 2, 1, 3, 4});
  CHECK(turns({3, 1}) == std::vector<std::size_t>{0, 1, 2});
}

TEST_CASE("memory that no machine has is counted without overflow") {
  Problem huge = read_problem(program("gemm"));
  huge.order = std::size_t{1} << 30U;
  CHECK(bytes_of(huge, {huge.blocks(), 2}) > 1e18);
  CHECK(bytes_of(read_problem(program()), {12, 2}) == 8.0 * (60 * 120 + 6 * 120));
}

TEST_CASE("a dense matrix is symmetric, and each row's entries beside the diagonal weigh less than a half") {
  const Problem problem = read_problem(program());
  for (std::size_t row = 0; row < problem.order; row += 7) {
    double beside = 0;
    for (std::size_t column = 0; column < problem.order; ++column) {
      CHECK(definite_entry(problem, row, column) == definite_entry(problem, column, row));
      beside += row == column ? 0 : std::abs(definite_entry(problem, row, column));
    }
    CHECK(beside < 0.5);
    CHECK(definite_entry(problem, row, row) >= 1);
  }
}

TEST_CASE("a plane is as square as its points allow") {
  CHECK(plane_of(4096) == std::pair<std::size_t, std::size_t>{64, 64});
  CHECK(plane_of(10) == std::pair<std::size_t, std::size_t>{2, 5});
  CHECK(plane_of(7) == std::pair<std::size_t, std::size_t>{1, 7});
}

TEST_CASE("products of stored rows are what plain loops over the definition say, dense and sparse") {
  for (const char* task : {"cg", "cg-sparse"}) {
    const Problem problem = read_problem(program(task));
    const Rows rows{problem.blocks(), 3};
    const int node = Machine::here().nodes().front().number;
    for (std::size_t rank = 0; rank < rows.ranks; ++rank) {
      const auto matrix = make_matrix(problem, rows.first(rank), rows.last(rank), node);
      std::vector<double> p(problem.order);
      for (std::size_t i = 0; i < p.size(); ++i) {
        p[i] = uniform(5, i, 0);
      }
      std::vector<double> q(problem.order, -1);
      for (std::size_t row = rows.first(rank); row < rows.last(rank); ++row) {
        matrix->fill(row);
      }
      for (const Part& part : parts_of(problem, rows, rank)) {
        matrix->multiply(part, p.data(), q.data() + part.row * problem.block);
      }
      for (std::size_t row = rows.first(rank); row < rows.last(rank); ++row) {
        CHECK(matrix->residual(row, p.data(), q.data() + row * problem.block) < 1e-24);
        q[row * problem.block] += 1e-6;
        CHECK(matrix->residual(row, p.data(), q.data() + row * problem.block) > 1e-13);
      }
    }
  }
}

TEST_CASE("a dense product needs all blocks of others, a sparse one those next to its own; own ones come first") {
  const Rows rows{12, 3};
  CHECK(needed_by(read_problem(program()), rows, 1).size() == 8);
  CHECK(needed_by(read_problem(program("cg-sparse")), rows, 1) == std::vector<std::size_t>{3, 8});
  CHECK(needed_by(read_problem(program("cg-sparse")), rows, 0) == std::vector<std::size_t>{4});
  CHECK(parts_of(read_problem(program()), rows, 1).front().columns.front() == 4);
  CHECK(parts_of(read_problem(program("cg-sparse")), rows, 1).front().row == 5);
}

TEST_CASE("time in which sends are under way counts once, and not what lies between them") {
  CHECK(under_way({}) == 0);
  CHECK(under_way({{0, 1000, 8}, {500, 2000, 8}, {600, 700, 8}, {5000, 6000, 8}}) == doctest::Approx(3e-6));
}

}  // namespace
}  // namespace elbowroom::kernels
