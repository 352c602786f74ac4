// How many messages make one batch, so that the clock is read rarely and each batch is long enough to be believed.
#pragma once

#include <cstdint>

namespace elbowroom {

// Nanoseconds a batch should last: a 64th of the window, but never less than what the clock resolves.
double batch_target_ns(double window_s, double minimum_ns);

// Iterations of the next batch when `iterations` took `took_ns`; grows by 32 times at most (a first message is cold
// and says little) and stays >= `least`.
std::int64_t next_iterations(std::int64_t iterations, double took_ns, double target_ns, std::int64_t least);

// True when a batch of this length needs no other calibration: between half and four times the target, or longer
// because it cannot have fewer iterations.
bool batch_fits(std::int64_t iterations, double took_ns, double target_ns, std::int64_t least);

}  // namespace elbowroom
