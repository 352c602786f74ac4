// What a step consists of, how many steps are asked for, and how long they take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace elbowroom::diffusion {

// none: no communication (the result is wrong); communication: only that; apart: the exchange after all computation;
// overlap: the exchange as soon as the separator is done, beside the interior; triad: another computation (Triad), none of
// communication. A barrier ends the steps of all of them (Langguth 2018, section V).
enum class Variant { none, communication, apart, overlap, triad };

Variant variant_of(const std::string& name);  // throws RequestError
std::string name_of(Variant variant);
bool computes(Variant variant);
bool communicates(Variant variant);

inline constexpr std::int64_t kMostSteps = 1'000'000;  // gates count by 32 bits, and each step of each thread is kept

struct Steps {
  Variant variant = Variant::overlap;
  int comm_threads = 1;
  std::int64_t steps = 20;
  std::int64_t warmup = 3;  // steps before those that are told
  std::string point;        // as in the answer
  std::int64_t repetition = 0;
};

// Seconds of each step on this rank: from the first thread's begin to the last one's end.
struct StepTimes {
  std::vector<double> step;  // from the end of the barrier before to the end of its own
  std::vector<double> separator;
  std::vector<double> interior;
  std::vector<double> exchange;  // packing included
  double all = 0;                // all steps together
};

}  // namespace elbowroom::diffusion
