#include "diffusion/medium.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "protocol/request.hpp"

namespace elbowroom::diffusion {
namespace {

constexpr double kPi = std::numbers::pi;

// The slowest mode of two layers of length l with walls outside: cos(k1 x) in the first, cos(k2 (2l - x)) in the second,
// decaying at one rate s^2 = kappa_i k_i^2. That value and flux are continuous between them means
// sqrt(kappa1) sin(t1) cos(t2) + sqrt(kappa2) cos(t1) sin(t2) = 0 with t_i = s l / sqrt(kappa_i); the larger of the two
// angles lies between pi/2, where the left side is not negative, and pi, where it is.
double slowest(double kappa1, double kappa2, double half) {
  const double root1 = std::sqrt(kappa1);
  const double root2 = std::sqrt(kappa2);
  const double smaller = std::min(root1, root2);
  double low = kPi / 2 * smaller / half;
  double high = kPi * smaller / half;
  while (true) {
    const double s = low + (high - low) / 2;
    if (s <= low || s >= high) {
      return s;
    }
    const double t1 = s * half / root1;
    const double t2 = s * half / root2;
    const double value = root1 * std::sin(t1) * std::cos(t2) + root2 * std::cos(t1) * std::sin(t2);
    (value > 0 ? low : high) = s;
  }
}

}  // namespace

Medium::Medium(const Mesh& mesh, const std::array<double, 2>& kappa)
    : kappa_(kappa), lengths_{mesh.length(0), mesh.length(1), mesh.length(2)}, wave_{}, height_{1, 1}, decay_(0) {
  for (const double one : kappa) {
    if (!(one > 0) || !std::isfinite(one)) {
      throw RequestError("kappa", fmt::format("{}", one), "a conductivity is positive", "give positive numbers");
    }
  }
  if (!layered()) {
    wave_ = {kPi / lengths_[0], kPi / lengths_[0]};
    height_ = {1, -1};
    for (const double length : lengths_) {
      decay_ += kappa[0] * kPi * kPi / (length * length);
    }
    return;
  }
  if (!mesh.regular()) {
    throw RequestError("kappa", fmt::format("{},{}", kappa[0], kappa[1]),
                       "two layers meet in the middle of a box, and this is a mesh of a file", "give one kappa");
  }
  if (mesh.cubes()[0] % 2 != 0) {
    throw RequestError("resolution", std::to_string(mesh.cubes()[0]),
                       "two layers meet in the middle of the box, which is inside of cells here",
                       "give an even number of cubes along x, or one kappa");
  }
  const double half = lengths_[0] / 2;
  const double s = slowest(kappa[0], kappa[1], half);
  wave_ = {s / std::sqrt(kappa[0]), s / std::sqrt(kappa[1])};
  height_ = {std::cos(wave_[1] * half), std::cos(wave_[0] * half)};
  const double larger = std::max(std::abs(height_[0]), std::abs(height_[1]));
  height_ = {height_[0] / larger, height_[1] / larger};
  decay_ = s * s;
}

double Medium::kappa(const Point& point) const { return kappa_[point[0] < lengths_[0] / 2 ? 0 : 1]; }

double Medium::along_x(double x) const {
  return x < lengths_[0] / 2 ? height_[0] * std::cos(wave_[0] * x)
                             : height_[1] * std::cos(wave_[1] * (lengths_[0] - x));
}

double Medium::exact(const Point& point, double time) const {
  double mode = along_x(point[0]);
  if (!layered()) {
    mode *= std::cos(kPi * point[1] / lengths_[1]) * std::cos(kPi * point[2] / lengths_[2]);
  }
  return 1 + mode * std::exp(-decay_ * time);
}

}  // namespace elbowroom::diffusion
