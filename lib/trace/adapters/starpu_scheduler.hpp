// The functions of StarPU's scheduler, which record: a task is pushed when it is ready, popped by a worker, which is idle
// while there is none. Only where the category `scheduler` (push, pop: three events a task) or `idle` is named.
#pragma once

namespace elbowroom::trace {

// After starpu_init: replaces the functions of the default context's policy, which are StarPU's own copy of it.
void watch_scheduler();

}  // namespace elbowroom::trace
