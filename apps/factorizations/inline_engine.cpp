// Tasks run in the thread that submits them, on the rank's computing core; a thread for broadcasts is on the communication core.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/request_error.hpp"
#include "factorizations/engine.hpp"
#include "machine/machine.hpp"

namespace elbowroom::factorizations {

const char* const Engine::kName = "inline";

struct Engine::Impl {};

Engine::Engine(const program::Seat& seat) : threads_(1), progress_core_(seat.comm_cores.front()) {
  if (seat.comp_cores.size() != 1) {
    throw RequestError("comp_cores", fmt::format("{}", fmt::join(seat.comp_cores, ",")),
                       "the inline build computes on one core of each rank", "name one core, or use the build starpu");
  }
  Machine::here().bind_this_thread(seat.comp_cores.front());
}

Engine::~Engine() = default;

const elbow_taskflow_executor* Engine::executor() const { return nullptr; }

void Engine::resume() {}

void Engine::pause() {}

}  // namespace elbowroom::factorizations
