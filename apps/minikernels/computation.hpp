// What a mini-kernel does between its messages: it sleeps, so that more ranks than cores can be run, or it computes.
#pragma once

#include <cstddef>
#include <vector>

namespace elbowroom::minikernels {

enum class Kind { sleep, work };

class Computation {
 public:
  // Work is a triad over so many bytes: in a cache it is bound by the core, beyond by memory. How fast it is alone, in
  // elements/s, is measured here, once, unless it is given.
  Computation(Kind kind, std::size_t working_set, double per_second = 0);

  // The work of so many seconds, or a sleep of that length.
  void run(double seconds);
  double spent() const { return spent_; }  // s, of all runs
  double per_second() const { return per_second_; }

 private:
  void triads(double count);

  Kind kind_;
  std::vector<double> a_, b_, c_;
  double per_second_;   // elements
  double carried_ = 0;  // elements of less than a whole triad
  double spent_ = 0;
};

double seconds_now();

}  // namespace elbowroom::minikernels
