// What diffuses and how it must come out: du/dt = div(kappa grad u) in the box, nothing passes its walls.
#pragma once

#include <array>

#include "diffusion/mesh.hpp"

namespace elbowroom::diffusion {

// One material, or two that fill the halves of the box in x.
class Medium {
 public:
  // `kappa` of the lower and of the upper half. Throws RequestError: not positive, or a boundary inside of cells.
  Medium(const Mesh& mesh, const std::array<double, 2>& kappa);

  double kappa(const Point& point) const;
  bool layered() const { return kappa_[0] != kappa_[1]; }
  const std::array<double, 2>& kappas() const { return kappa_; }

  // The solution that is known: 1 plus the slowest mode that dies away along each axis (layers: along x only, where both
  // halves decay at one rate and neither the value nor the flux jumps between them).
  double exact(const Point& point, double time) const;
  double decay() const { return decay_; }  // rate of the mode, 1/time

 private:
  double along_x(double x) const;

  std::array<double, 2> kappa_;
  std::array<double, 3> lengths_;
  std::array<double, 2> wave_;    // wave number in x, of each half
  std::array<double, 2> height_;  // of the mode in each half
  double decay_;
};

}  // namespace elbowroom::diffusion
