// StarPU on one rank: started with its threads on the cores that were named, looked after, and ended.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace elbowroom::program {

// Cores carry the operating system's numbers. StarPU (1.3) does not start without a worker: where none is named, one
// sleeps on the core of the communication thread.
struct StarpuThreads {
  int mpi_core = 0;
  std::vector<int> worker_cores;
  std::optional<unsigned>
      backoff;            // nops between two polls, at most (from 1 on, doubled); StarPU's own, 32, when absent
  std::string scheduler;  // one of StarPU's; its own default when empty
};

// Nanoseconds that threads ran, and waited for a core while they could run, since they were started.
struct Ran {
  double on_core = 0;
  double waiting = 0;
};

// StarPU's default places the communication threads of two ranks of a host on one core, and messages then wait for time
// slices (4 ms); so every thread is placed here, and where it really is is read back.
class Starpu {
 public:
  // MPI must have been started with MPI_THREAD_MULTIPLE (or SERIALIZED). Workers are paused. Throws RequestError when
  // StarPU does not start, or a thread is not where it was put. Collective.
  explicit Starpu(const StarpuThreads& threads);
  ~Starpu();
  Starpu(const Starpu&) = delete;
  Starpu& operator=(const Starpu&) = delete;

  void resume();  // workers poll for tasks
  void pause();   // returns when they sleep
  Ran workers_ran() const;
  std::size_t workers() const { return threads_.worker_cores.size(); }

  // StarPU's threads as the kernel knows them: [{"name", "cores", "role": "communication" | "worker"}].
  nlohmann::json threads() const;
  static std::string version();

 private:
  void start();
  void find_threads(const std::set<int>& before);

  StarpuThreads threads_;
  bool paused_ = false;
  std::vector<int> worker_ids_;  // the kernel's
  int mpi_id_ = 0;
};

}  // namespace elbowroom::program
