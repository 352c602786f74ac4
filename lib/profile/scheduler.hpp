// What the scheduler does with a thread that calls: samples of its CPU time and its wait in the run queue, at calls. They take
// a thousandth of the time at most.
#pragma once

#include <cstdint>

struct elbow_profile;

namespace elbowroom::profile {

// What a thread knows of its last sample.
struct Sampling {
  std::uint64_t due = 0;   // ns; the first sample is due at once
  std::uint64_t mark = 0;  // when a mark of the program may have one
  std::uint64_t profile = 0;
  std::uint64_t last = 0;  // when it was
  std::uint64_t cpu_ns = 0;
  std::uint64_t waited_ns = 0;
  bool waits_known = false;
  std::uint64_t cheapest = ~std::uint64_t{0};  // ns of CPU time that a sample took
  std::uint16_t thread = 0;                    // place in the table of threads
  int opened = 0;                              // how often
  int file = -1;                               // schedstat
};

extern constinit thread_local Sampling sampling __attribute__((tls_model("initial-exec")));

// As elbow_profile_sample.
int sample(elbow_profile& profile);

}  // namespace elbowroom::profile
