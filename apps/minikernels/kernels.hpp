// The mini-kernels: communication patterns of the NAS parallel benchmarks, without their computations.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "minikernels/computation.hpp"
#include "minikernels/exchange.hpp"

namespace elbowroom::minikernels {

struct Step {
  Exchange& exchange;
  Computation& computation;
  std::size_t size;  // bytes of the kernel's largest message
  double seconds;    // of computation
  int number;
  bool last;
};

struct Kernel {
  std::string name;
  std::string pattern;  // for people
  // For two nodes of two ranks and NICs of 50 MB/s: some seconds.
  int steps;
  std::size_t size;
  double seconds;  // of computation in a step
  std::function<void(const Step&)> step;
  std::function<std::string(int ranks)> refused;  // why it does not run on so many ranks; empty where it does
};

const std::vector<Kernel>& kernels();
// nullptr where there is none of this name.
const Kernel* find_kernel(const std::string& name);

// Steps of neighbours.cpp and wavefront.cpp.
void faces(const Step& step, int stages);
void levels(const Step& step);
void wavefronts(const Step& step);

}  // namespace elbowroom::minikernels
