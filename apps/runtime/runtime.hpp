// The program: StarPU started once with its threads in place, then phases as they are asked for.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/serve.hpp"
#include "common/starpu.hpp"
#include "runtime/pingpong.hpp"

namespace elbowroom::runtime {

enum class Task { overhead, polling };

// Where the threads of one rank are. The calling thread passes messages by MPI on the core of the communication thread; it
// waits for StarPU's asleep, on a core of its own where there is one (`comm_cores[1]`), as the paper has it (section 5.1).
struct Seats {
  int mpi_core = 0;
  int waiting_core = 0;
  std::vector<int> worker_cores;
  int data_node = 0;
  int comm_node = 0;
};

class Runtime : public program::Program {
 public:
  // Refuses threads that would share a core. Collective; throws RequestError on all ranks alike.
  Runtime(const Job& job, const program::Settings& settings);

  nlohmann::json facts() const override;
  nlohmann::json answer(const nlohmann::json& request) override;

 private:
  struct PointRequest;
  static PointRequest read_point(const nlohmann::json& request);
  nlohmann::json phase(const PointRequest& request, const std::string& name, int index);
  nlohmann::json observations(const Measured& rates, bool polling, const program::Ran& before, double phase_ns) const;
  void use(std::size_t size);
  void bind(int core);

  const Job& job_;
  Task task_;
  Seats seats_;
  bool polls_ = false;           // in phase AB
  std::set<std::string> flags_;  // of where the threads are
  std::optional<program::Starpu> starpu_;
  nlohmann::json threads_;  // of all ranks
  int bound_ = -1;
  std::optional<Message> message_;
};

}  // namespace elbowroom::runtime
