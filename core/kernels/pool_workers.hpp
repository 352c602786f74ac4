// Workers of a task-based runtime system that have nothing to do: polling the shared list, or paused.
#pragma once

#include <memory>

#include "kernels/kernel.hpp"

namespace elbowroom {

// All polling workers of this process share one list, all paused ones another. `most_nops`: of the back-off.
std::unique_ptr<Worker> make_polling(int most_nops);
std::unique_ptr<Worker> make_paused();

}  // namespace elbowroom
