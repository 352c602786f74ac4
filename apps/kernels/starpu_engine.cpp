// Tasks and messages by StarPU and StarPU-MPI, whose sequential task flow orders both; its public interface only.
#include <starpu.h>
#include <starpu_mpi.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <utility>

#include "common/gate.hpp"
#include "common/starpu.hpp"
#include "kernels/engine.hpp"
#include "machine/machine.hpp"

namespace elbowroom::kernels {
namespace {

void check(int failed, const char* what) {
  if (failed != 0) {
    throw std::runtime_error(std::string(what) + " failed (" + std::to_string(failed) + ")");
  }
}

// What a task is given. It is the task's to delete.
struct Body {
  Meter* meter;
  Kind kind;
  std::function<void()> body;
};

void run_task(void**, void* argument) {
  const std::unique_ptr<Body> job(static_cast<Body*>(argument));
  job->meter->run(static_cast<std::size_t>(starpu_worker_get_id()), job->kind, job->body);
}

starpu_codelet* codelet() {
  static starpu_codelet one = [] {
    starpu_codelet blank;
    starpu_codelet_init(&blank);
    blank.cpu_funcs[0] = run_task;
    blank.nbuffers = STARPU_VARIABLE_NBUFFERS;
    blank.name = "block";
    return blank;
  }();
  return &one;
}

}  // namespace

const char* const Engine::kName = "starpu";
const char* const Engine::kThreadLevel = "multiple";

struct Engine::Impl {
  // Of a message that was asked for; the callback that tells its end deletes it.
  struct Message {
    Impl* impl;
    starpu_data_handle_t handle;
    std::size_t bytes;
    bool sends;
    bool counted;
    std::int64_t ready;  // ns
  };

  Impl(Engine& engine_, const Job& job_, const program::Seat& seat)
      : engine(engine_), job(job_), starpu({seat.comm_cores.front(), seat.comp_cores, {}}) {}

  Message* message(Datum datum, bool sends, bool counted);
  static void is_ready(void* argument);
  static void is_done(void* argument);

  Engine& engine;
  const Job& job;
  program::Starpu starpu;
  std::vector<starpu_data_handle_t> data;
  std::vector<Memory> memory;
  std::uint32_t messages = 0;  // asked for since the last wait
  program::Gate done;          // messages
};

Engine::Impl::Message* Engine::Impl::message(Datum datum, bool sends, bool counted) {
  ++messages;
  return new Message{this, data[datum], memory[datum].count * sizeof(double), sends, counted, 0};
}

// Called as soon as what is sent may be read. StarPU-MPI, which has asked for the same right behind, is called next.
void Engine::Impl::is_ready(void* argument) {
  auto* message = static_cast<Message*>(argument);
  message->ready = now_ns();
  starpu_data_release(message->handle);
}

// Called by StarPU-MPI's thread.
void Engine::Impl::is_done(void* argument) {
  const std::unique_ptr<Message> message(static_cast<Message*>(argument));
  if (message->sends) {
    message->impl->engine.meter_.sent({message->ready, now_ns(), message->bytes}, message->counted);
  }
  message->impl->done.raise();
}

// The thread that asks for tasks does not compute: it waits on the communication core.
Engine::Engine(const Job& job, const program::Seat& seat, const program::Sharing&)
    : threads_(seat.comp_cores.size()), meter_(seat.comp_cores), impl_(std::make_unique<Impl>(*this, job, seat)) {
  Machine::here().bind_this_thread(seat.comm_cores.front());
}

Engine::~Engine() {
  impl_->starpu.resume();
  for (const starpu_data_handle_t handle : impl_->data) {
    starpu_data_unregister(handle);
  }
}

Datum Engine::datum(const Memory& memory) {
  starpu_data_handle_t handle = nullptr;
  starpu_vector_data_register(&handle, STARPU_MAIN_RAM, reinterpret_cast<std::uintptr_t>(memory.first),
                              static_cast<std::uint32_t>(memory.count), sizeof(double));
  impl_->data.push_back(handle);
  impl_->memory.push_back(memory);
  return impl_->data.size() - 1;
}

// Workers sleep where nothing is computed.
void Engine::run(Mode mode, const std::function<void()>& work) {
  mode_ = mode;
  if (computes(mode)) {
    impl_->starpu.resume();
  }
  work();
  impl_->starpu.pause();
}

void Engine::task(Kind kind, const std::vector<Use>& uses, std::function<void()> body) {
  if (!computes(mode_)) {
    return;
  }
  starpu_task* task = starpu_task_create();
  task->cl = codelet();
  task->cl_arg = new Body{&meter_, kind, std::move(body)};
  task->nbuffers = static_cast<int>(uses.size());
  // StarPU frees both with the task.
  task->dyn_handles = static_cast<starpu_data_handle_t*>(std::malloc(uses.size() * sizeof(starpu_data_handle_t)));
  task->dyn_modes = static_cast<starpu_data_access_mode*>(std::malloc(uses.size() * sizeof(starpu_data_access_mode)));
  for (std::size_t i = 0; i < uses.size(); ++i) {
    task->dyn_handles[i] = impl_->data[uses[i].datum];
    task->dyn_modes[i] = uses[i].writes ? STARPU_RW : STARPU_R;
  }
  check(starpu_task_submit(task), "starpu_task_submit");
}

void Engine::send(Datum datum, int rank, std::size_t tag, bool counted) {
  if (!communicates(mode_)) {
    return;
  }
  Impl::Message* message = impl_->message(datum, true, counted);
  check(starpu_data_acquire_cb(message->handle, STARPU_R, Impl::is_ready, message), "starpu_data_acquire_cb");
  check(starpu_mpi_isend_detached(impl_->data[datum], rank, static_cast<starpu_mpi_tag_t>(tag), MPI_COMM_WORLD,
                                  Impl::is_done, message),
        "starpu_mpi_isend_detached");
}

void Engine::receive(Datum datum, int rank, std::size_t tag) {
  if (!communicates(mode_)) {
    return;
  }
  Impl::Message* message = impl_->message(datum, false, false);
  check(starpu_mpi_irecv_detached(message->handle, rank, static_cast<starpu_mpi_tag_t>(tag), MPI_COMM_WORLD,
                                  Impl::is_done, message),
        "starpu_mpi_irecv_detached");
}

void Engine::wait() {
  impl_->done.wait_for(std::exchange(impl_->messages, 0), 0);
  check(starpu_task_wait_for_all(), "starpu_task_wait_for_all");
  impl_->done.reset();
}

void Engine::align() { check(starpu_mpi_barrier(MPI_COMM_WORLD), "starpu_mpi_barrier"); }

}  // namespace elbowroom::kernels
