// A scheduling policy that wraps another one: while large messages move, memory-bound tasks wait, and others go first.
#pragma once

#include <starpu.h>
#include <starpu_scheduler.h>

#include <string>

#include "behind.hpp"
#include "elbowroom/guard.h"

namespace elbowroom::guard {

// StarPU's function of that name, behind this library's own; ends the process where there is none.
void* starpu_function(const char* name);

template <typename F>
F* starpu_function(F* /* its signature */, const char* name) {
  return reinterpret_cast<F*>(starpu_function(name));
}

#define ELBOW_STARPU(name)                                                         \
  ([]() {                                                                          \
    static auto* const symbol = elbowroom::guard::starpu_function(&::name, #name); \
    return symbol;                                                                 \
  }())

// The number of the lever on the board (src/elbowroom/guard/README.md), and its settings there.
constexpr std::uint32_t kStarpuLever = 1;
enum StarpuSetting : std::uint64_t {
  kPrefer = 2,  // memory-bound tasks run where there is nothing else
  kSpare,       // the half of the workers that is next to the NIC waits instead
  kHold,        // all workers wait
};

// The policy's functions are those of the guard from now on, and call its own. "" or why not, as the end of a sentence.
std::string guard_policy(starpu_sched_policy& policy, elbow_guard* board);

// Says what is to be said of the tasks that ran, and forgets them: StarPU ends.
void end_policy();

}  // namespace elbowroom::guard
