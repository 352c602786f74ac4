// The scheme: its order, what it conserves, and that no bit of a value depends on who computes it.
#include "diffusion/block.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "diffusion/partition.hpp"
#include "protocol/request.hpp"

namespace elbowroom::diffusion {
namespace {

struct Domain {
  Mesh mesh;
  Medium medium;
  Block block;

  Domain(const std::array<int, 3>& cubes, const std::array<double, 2>& kappa, Order order = Order::tiles)
      : mesh(cubes),
        medium(mesh, kappa),
        block(mesh, medium, make_part(mesh, partition(mesh, 1, Partitioner::metis), 0, order),
              Machine::here().nodes().front().number) {}

  void start(double dt) {
    block.fill(places(mesh, block.part()), dt, 0, block.slice_count());
    block.begin(0, static_cast<std::size_t>(block.part().own()));
  }
  void run(std::int64_t steps) {
    for (std::int64_t step = 1; step <= steps; ++step) {
      sweep(block.slices(), block.field(step - 1), block.field(step), 0, block.slice_count());
    }
  }
};

double error_in_l2(const std::array<int, 3>& cubes, const std::array<double, 2>& kappa, double time) {
  Domain domain(cubes, kappa);
  const auto steps = static_cast<std::int64_t>(std::ceil(time / (0.9 * longest_step(domain.mesh, domain.medium))));
  domain.start(time / static_cast<double>(steps));
  domain.run(steps);
  return std::sqrt(domain.block.error(steps, time).squares);
}

void check_second_order(const std::array<int, 3>& shape, const std::array<double, 2>& kappa, double time) {
  std::array<double, 3> errors{};
  for (std::size_t level = 0; level < 3; ++level) {
    const int scale = 1 << level;
    errors[level] = error_in_l2({shape[0] * scale, shape[1] * scale, shape[2] * scale}, kappa, time);
  }
  CHECK(std::log2(errors[0] / errors[1]) > 1.9);
  CHECK(std::log2(errors[1] / errors[2]) > 1.9);
}

TEST_CASE("the error in L2 against the known solution falls with the square of the edge") {
  check_second_order({6, 6, 6}, {1, 1}, 0.02);
}

TEST_CASE("so it does in a box of three different lengths") { check_second_order({4, 6, 8}, {0.5, 0.5}, 0.02); }

TEST_CASE("and across a jump of the conductivity by a factor of ten") { check_second_order({8, 2, 2}, {1, 0.1}, 0.1); }

TEST_CASE("the known solution of two layers keeps value and flux where they meet") {
  const Mesh mesh({4, 4, 4});
  const Medium medium(mesh, {2, 0.25});
  const double h = 1e-6;
  const auto at = [&](double x) { return medium.exact({x, 0.3, 0.6}, 0.01); };
  CHECK(at(0.5 - 1e-12) == doctest::Approx(at(0.5 + 1e-12)));
  const double left = 2 * (at(0.5 - h) - at(0.5 - 3 * h)) / (2 * h);
  const double right = 0.25 * (at(0.5 + 3 * h) - at(0.5 + h)) / (2 * h);
  CHECK(left == doctest::Approx(right).epsilon(1e-4));
  CHECK(left != doctest::Approx(0).epsilon(1e-3));
}

TEST_CASE("nothing leaves the box: the integral stays, and no value leaves the range of the first ones") {
  Domain domain({6, 4, 5}, {1, 3});
  domain.start(longest_step(domain.mesh, domain.medium));
  const double before = domain.block.integral(0);
  domain.run(500);
  CHECK(std::abs(domain.block.integral(500) - before) < 1e-13 * before);
  CHECK(domain.block.error(500, 0).largest <= 2);
}

TEST_CASE("a plain loop finds what a sweep has written, and finds a value that is wrong") {
  Domain domain({4, 4, 4}, {1, 1});
  domain.start(longest_step(domain.mesh, domain.medium));
  domain.run(7);
  CHECK(domain.block.follows(7));
  domain.block.field(7)[11] += 1e-12;
  CHECK_FALSE(domain.block.follows(7));
  domain.block.field(7)[11] = std::nan("");
  CHECK_FALSE(domain.block.follows(7));
}

TEST_CASE("the order of the cells changes no bit of any value") {
  std::array<std::uint64_t, 4> sums{};
  std::size_t next = 0;
  for (const Order order : {Order::tiles, Order::natural, Order::hilbert, Order::rcm}) {
    Domain domain({6, 10, 4}, {1, 0.5}, order);
    domain.start(longest_step(domain.mesh, domain.medium));
    domain.run(20);
    sums[next++] = domain.block.checksum(20);
  }
  for (const std::uint64_t sum : sums) {
    CHECK(sum == sums[0]);
  }
}

TEST_CASE("a checksum tells two fields apart that differ in one bit, or in the place of two values") {
  Domain domain({2, 2, 2}, {1, 1});
  domain.start(longest_step(domain.mesh, domain.medium));
  const std::uint64_t before = domain.block.checksum(0);
  double* values = domain.block.field(0);
  double* other =
      std::find_if(values, values + domain.block.part().own(), [&](double one) { return one != values[0]; });
  std::swap(*values, *other);
  CHECK(domain.block.checksum(0) != before);
  std::swap(*values, *other);
  CHECK(domain.block.checksum(0) == before);
  values[5] = std::nextafter(values[5], 10);
  CHECK(domain.block.checksum(0) != before);
}

TEST_CASE("a conductivity that is not positive, and layers that meet inside of cells, are refused") {
  CHECK_THROWS_AS(Medium(Mesh({2, 2, 2}), {0, 1}), RequestError);
  CHECK_THROWS_AS(Medium(Mesh({3, 2, 2}), {1, 2}), RequestError);
  CHECK_NOTHROW(Medium(Mesh({3, 2, 2}), {2, 2}));
}

}  // namespace
}  // namespace elbowroom::diffusion
