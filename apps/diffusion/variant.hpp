// What a step consists of, and how many steps are asked for.
#pragma once

#include <cstdint>
#include <string>

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
};

}  // namespace elbowroom::diffusion
