// What makes messages progress in this process beside its calls: threads that the MPI library started, and how often it gives
// up its core while it waits. The lever `progress` (src/elbowroom/guard/levers/progress.py) moves and changes them.
#pragma once

#include <cstdint>

#include "elbowroom/guard.h"

namespace elbowroom::pmpi {

// Before MPI_Init starts threads, and after it.
void note_own_threads();
void find_progress();

// Does what the setting on the board says; says there which setting this process has, or why it does not.
void follow_progress_setting(elbow_guard* board);

}  // namespace elbowroom::pmpi
