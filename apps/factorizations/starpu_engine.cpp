// Tasks run on StarPU's workers, on the rank's computing cores; this thread submits them, and makes the progress of broadcasts,
// on the communication core.
#include "common/starpu.hpp"
#include "elbowroom/taskflow_starpu.h"
#include "factorizations/engine.hpp"
#include "machine/machine.hpp"

namespace elbowroom::factorizations {

const char* const Engine::kName = "starpu";

struct Engine::Impl {
  explicit Impl(const program::Seat& seat) : starpu({seat.comm_cores.front(), seat.comp_cores, {}}) {}
  program::Starpu starpu;
  elbow_taskflow_executor executor = elbow_taskflow_executor_of_starpu();
};

Engine::Engine(const program::Seat& seat)
    : threads_(seat.comp_cores.size()), progress_core_(-1), impl_(std::make_unique<Impl>(seat)) {
  Machine::here().bind_this_thread(seat.comm_cores.front());
}

Engine::~Engine() = default;

const elbow_taskflow_executor* Engine::executor() const { return &impl_->executor; }

void Engine::resume() { impl_->starpu.resume(); }

void Engine::pause() { impl_->starpu.pause(); }

}  // namespace elbowroom::factorizations
