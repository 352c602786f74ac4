// Numbers of tasks in a process: one count for all adapters that are loaded into it.
#pragma once

#include <atomic>
#include <cstdint>

namespace elbowroom::trace {

// Of default visibility: the dynamic linker makes one of it, whichever libraries have it.
__attribute__((visibility("default"))) inline std::atomic<std::uint64_t> tasks_numbered{0};

inline std::uint64_t next_task() { return tasks_numbered.fetch_add(1, std::memory_order_relaxed) + 1; }

}  // namespace elbowroom::trace
