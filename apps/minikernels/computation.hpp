// What a mini-kernel does between its messages: it sleeps, so that more ranks than cores can be run, or it computes.
#pragma once

#include <cstddef>
#include <vector>

namespace elbowroom::minikernels {

enum class Kind { sleep, work };

class Computation {
 public:
  // Work is a triad over so many bytes: in a cache it is bound by the core, beyond by memory. How fast it is alone is
  // measured here, once, unless `rate` (elements/s) is above 0: beside another job the trials would find less work.
  Computation(Kind kind, std::size_t working_set, double rate = 0);

  // The work of so many seconds, or a sleep of that length.
  void run(double seconds);
  double spent() const { return spent_; }      // s, of all runs
  double rate() const { return per_second_; }  // elements/s, 0 of a sleep

 private:
  void triads(double count);

  Kind kind_;
  std::vector<double> a_, b_, c_;
  double per_second_ = 0;  // elements
  double carried_ = 0;     // elements of less than a whole triad
  double spent_ = 0;
};

double seconds_now();

}  // namespace elbowroom::minikernels
