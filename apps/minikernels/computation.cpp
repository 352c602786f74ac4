#include "minikernels/computation.hpp"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

namespace elbowroom::minikernels {
namespace {

constexpr int kTrials = 5;
constexpr double kTrial = 0.02;  // s
constexpr std::size_t kArrays = 3;

void sleep_until(double end) {
  const timespec time{static_cast<time_t>(end), static_cast<long>((end - std::floor(end)) * 1e9)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

}  // namespace

double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Computation::Computation(Kind kind, std::size_t working_set, double rate) : kind_(kind), per_second_(rate) {
  if (kind_ == Kind::sleep) {
    return;
  }
  const std::size_t length = std::max<std::size_t>(working_set / kArrays / sizeof(double), 1);
  a_.assign(length, 0);
  b_.assign(length, 1);
  c_.assign(length, 2);
  if (per_second_ > 0) {
    triads(static_cast<double>(length));  // warms the caches, as the trials do
    return;
  }
  // The best of some trials: in the others something else had the core.
  for (int i = 0; i < kTrials; ++i) {
    const double begun = seconds_now();
    double done = 0;
    double took = 0;
    while (took < kTrial) {
      triads(static_cast<double>(length));
      done += static_cast<double>(length);
      took = seconds_now() - begun;
    }
    per_second_ = std::max(per_second_, done / took);
  }
}

// Whole passes over the arrays; what is left is done by a later call.
void Computation::triads(double count) {
  carried_ += count;
  const auto length = static_cast<double>(a_.size());
  for (; carried_ >= length; carried_ -= length) {
    double* const a = a_.data();
    const double* const b = b_.data();
    const double* const c = c_.data();
    for (std::size_t i = 0; i < a_.size(); ++i) {
      a[i] = b[i] + 0.5 * c[i];
    }
    asm volatile("" : : "r"(a) : "memory");  // the next pass computes the same
  }
}

void Computation::run(double seconds) {
  if (seconds <= 0) {
    return;
  }
  const double begun = seconds_now();
  if (kind_ == Kind::sleep) {
    sleep_until(begun + seconds);
  } else {
    triads(seconds * per_second_);
  }
  spent_ += seconds_now() - begun;
}

}  // namespace elbowroom::minikernels
