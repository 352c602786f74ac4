// On which cores the threads of this process may run, and how long they have run: threads that share a core slow each other
// down, and none of them can see it.
#pragma once

#include "profile/layout.hpp"

namespace elbowroom::profile {

// Adds what /proc/self/task says now; threads that have ended keep what was seen of them. One thread at a time.
void look_at_threads(Header& header);

}  // namespace elbowroom::profile
