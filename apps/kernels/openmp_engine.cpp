// Tasks on a team of OpenMP, messages by its first thread, which is MPI's (funneled).
//
// OpenMP's own dependences cannot wait for a message without giving it a thread: a detached task is run at once, and waited
// for, when more than 64 tasks of each thread wait already (libgomp), so that two ranks could wait for each other for ever.
#include <fmt/format.h>
#include <omp.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

#include "base/request_error.hpp"
#include "common/complete.hpp"
#include "kernels/engine.hpp"
#include "machine/machine.hpp"

namespace elbowroom::kernels {
namespace {

using program::Waiting;

// Some tens of microseconds: a task that comes soon starts soon.
constexpr int kSpins = 1000;

void check_team(std::size_t wanted) {
  const auto came = static_cast<std::size_t>(omp_get_num_threads());
  if (came != wanted) {
    throw RequestError(
        "comp_cores", fmt::format("{}", wanted - 1),
        fmt::format("OpenMP gave {} threads instead of {}, the communication thread included", came, wanted),
        "unset OMP_THREAD_LIMIT and OMP_DYNAMIC", "machine");
  }
}

}  // namespace

const char* const Engine::kName = "openmp";
const char* const Engine::kThreadLevel = "funneled";

struct Engine::Impl {
  // A node of the graph: a task, or a message when it has no body.
  struct Operation {
    Kind kind = Kind::product;
    std::function<void()> body;
    bool sends = false;
    bool counted = false;
    Datum datum = 0;
    int rank = -1;
    int tag = 0;
    std::int64_t ready = 0;  // ns
  };

  Impl(Engine& engine_, const Job& job_, std::vector<int> cores_, const program::Sharing& sharing)
      : engine(engine_),
        job(job_),
        cores(std::move(cores_)),
        spins(sharing.computing ? 0 : kSpins),
        waiting(sharing.waiting) {}

  void ask(const std::vector<Use>& uses, Operation operation);
  void may_start(Graph::Node node);  // under the lock
  void complete(Graph::Node node);
  void compute(std::size_t thread);
  void post(Graph::Node node);
  bool progress();

  Engine& engine;
  const Job& job;
  const std::vector<int> cores;
  const int spins;
  const Waiting waiting;
  std::vector<Memory> memory;

  std::mutex mutex;
  std::condition_variable changed;
  Graph graph;
  std::deque<Operation> operations;       // by node
  std::deque<Graph::Node> tasks;          // that may start
  std::deque<Graph::Node> messages;       // that may start
  bool closed = false;                    // no more tasks will come
  std::atomic<std::size_t> startable{0};  // size of `tasks`, looked at without the lock
  std::atomic<std::size_t> left{0};       // nodes that are not done
  std::atomic<std::size_t> posted{0};     // size of `messages`

  // Of the communication thread alone.
  std::vector<MPI_Request> requests;
  std::vector<Graph::Node> active;  // of the requests
  std::vector<int> finished;
};

void Engine::Impl::may_start(Graph::Node node) {
  if (operations[node].body) {
    tasks.push_back(node);
    startable.store(tasks.size(), std::memory_order_release);
    changed.notify_one();
  } else {
    operations[node].ready = now_ns();
    messages.push_back(node);
    posted.store(messages.size(), std::memory_order_release);
  }
}

void Engine::Impl::ask(const std::vector<Use>& uses, Operation one) {
  const std::lock_guard lock(mutex);
  operations.push_back(std::move(one));
  left.fetch_add(1, std::memory_order_relaxed);
  if (graph.add(uses)) {
    may_start(graph.size() - 1);
  }
}

void Engine::Impl::complete(Graph::Node node) {
  const std::lock_guard lock(mutex);
  operations[node].body = nullptr;
  for (const Graph::Node next : graph.done(node)) {
    may_start(next);
  }
  left.fetch_sub(1, std::memory_order_release);
}

// What a computing thread does between open and close.
void Engine::Impl::compute(std::size_t thread) {
  for (;;) {
    for (int look = 0; look < spins && startable.load(std::memory_order_acquire) == 0; ++look) {
      program::relax();
    }
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return !tasks.empty() || closed; });
    if (tasks.empty()) {
      return;
    }
    const Graph::Node node = tasks.front();
    tasks.pop_front();
    startable.store(tasks.size(), std::memory_order_relaxed);
    const Operation& task = operations[node];
    lock.unlock();
    engine.meter_.run(thread, task.kind, task.body);
    complete(node);
  }
}

void Engine::Impl::post(Graph::Node node) {
  const Operation& message = operations[node];
  const Memory& what = memory[message.datum];
  MPI_Request request = MPI_REQUEST_NULL;
  if (message.sends) {
    MPI_Isend(what.first, static_cast<int>(what.count), MPI_DOUBLE, message.rank, message.tag, job.messages(),
              &request);
  } else {
    MPI_Irecv(what.first, static_cast<int>(what.count), MPI_DOUBLE, message.rank, message.tag, job.messages(),
              &request);
  }
  requests.push_back(request);  // MPI_Testsome completes it, which the checker does not follow
  active.push_back(node);       // NOLINT(clang-analyzer-optin.mpi.MPI-Checker)
}

// Posts what may be posted and completes what is complete; whether there was anything.
bool Engine::Impl::progress() {
  bool moved = false;
  if (posted.load(std::memory_order_acquire) > 0) {
    std::deque<Graph::Node> ready;
    {
      const std::lock_guard lock(mutex);
      ready.swap(messages);
      posted.store(0, std::memory_order_relaxed);
    }
    for (const Graph::Node node : ready) {
      post(node);
    }
    moved = true;
  }
  if (requests.empty()) {
    return moved;
  }
  finished.resize(requests.size());
  int count = 0;
  MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &count, finished.data(), MPI_STATUSES_IGNORE);
  const std::int64_t now = now_ns();
  for (int i = 0; i < count; ++i) {
    const Graph::Node node = active[static_cast<std::size_t>(finished[static_cast<std::size_t>(i)])];
    const Operation& message = operations[node];
    if (message.sends) {
      engine.meter_.sent({message.ready, now, memory[message.datum].count * sizeof(double)}, message.counted);
    }
    complete(node);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i] != MPI_REQUEST_NULL) {
      requests[kept] = requests[i];
      active[kept++] = active[i];
    }
  }
  requests.resize(kept);
  active.resize(kept);
  return moved || count > 0;
}

Engine::Engine(const Job& job, const program::Seat& seat, const program::Sharing& sharing)
    : threads_(seat.comp_cores.size()),
      meter_(seat.comp_cores),
      impl_(std::make_unique<Impl>(*this, job, seat.comp_cores, sharing)) {
  Machine::here().bind_this_thread(seat.comm_cores.front());
}

Engine::~Engine() = default;

Datum Engine::datum(const Memory& memory) {
  impl_->memory.push_back(memory);
  return impl_->memory.size() - 1;
}

// An exception must not leave the team: the first thread's is kept until all have met.
void Engine::run(Mode mode, const std::function<void()>& work) {
  mode_ = mode;
  impl_->closed = false;
  std::exception_ptr error;
#pragma omp parallel num_threads(static_cast <int>(threads_) + 1) default(shared)
  {
    const int thread = omp_get_thread_num();
    if (thread == 0) {
      try {
        check_team(threads_ + 1);
        work();
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(impl_->mutex);
      impl_->closed = true;
      impl_->changed.notify_all();
    } else {
      Machine::here().bind_this_thread(impl_->cores[static_cast<std::size_t>(thread) - 1]);
      impl_->compute(static_cast<std::size_t>(thread) - 1);
    }
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

void Engine::task(Kind kind, const std::vector<Use>& uses, std::function<void()> body) {
  if (computes(mode_)) {
    Impl::Operation operation;
    operation.kind = kind;
    operation.body = std::move(body);
    impl_->ask(uses, std::move(operation));
  }
}

void Engine::send(Datum datum, int rank, std::size_t tag, bool counted) {
  if (communicates(mode_)) {
    Impl::Operation operation;
    operation.sends = true;
    operation.counted = counted;
    operation.datum = datum;
    operation.rank = rank;
    operation.tag = static_cast<int>(tag);
    impl_->ask({{datum, false}}, std::move(operation));
    impl_->progress();
  }
}

void Engine::receive(Datum datum, int rank, std::size_t tag) {
  if (communicates(mode_)) {
    Impl::Operation operation;
    operation.datum = datum;
    operation.rank = rank;
    operation.tag = static_cast<int>(tag);
    impl_->ask({{datum, true}}, std::move(operation));
    impl_->progress();
  }
}

void Engine::wait() {
  while (impl_->left.load(std::memory_order_acquire) > 0) {
    if (!impl_->progress()) {
      program::wait_a_little(impl_->waiting);
    }
  }
  const std::lock_guard lock(impl_->mutex);
  impl_->graph.clear();
  impl_->operations.clear();
}

void Engine::align() { program::barrier(impl_->job.headers(), impl_->waiting); }

}  // namespace elbowroom::kernels
