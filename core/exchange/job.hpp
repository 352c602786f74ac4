// The MPI job: ranks, their hosts, communicators, and messages of control between rank 0 and the others.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace elbowroom {

// Control messages are JSON texts on a communicator of their own. Whoever waits for one polls with MPI_Iprobe and
// sleeps in between, so that ranks that wait disturb nothing.
class Job {
 public:
  // MPI_Init_thread with the level of that name (single, funneled, multiple); throws std::runtime_error. A level costs:
  // 4 B took 0.30 us funneled and 0.40 us multiple with Open MPI 5, 0.31 us single and 0.39 us funneled with 4.1.
  Job(int* argc, char*** argv, const std::string& threads);
  ~Job();  // MPI_Finalize
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::vector<std::string>& hosts() const { return hosts_; }
  bool same_host(int rank) const { return hosts_[static_cast<std::size_t>(rank)] == hosts_.front(); }
  int ranks_on_host_of(int rank) const;
  bool first_on_host() const;  // whether no lower rank is on this rank's host
  int thread_level() const { return thread_level_; }
  const std::string& transport() const { return transport_; }  // as in hello
  std::string library() const;                                 // name and version, as in hello
  // Any number, the same on all ranks and on no other job's. Collective.
  std::uint64_t common_number() const;
  nlohmann::json mpi_facts() const;  // as in hello
  nlohmann::json ranks() const;      // as in hello

  MPI_Comm messages() const { return messages_; }  // what is measured
  MPI_Comm headers() const { return headers_; }    // what announces a batch
  MPI_Comm control() const { return control_; }    // for what is collective

  void send(int rank, const nlohmann::json& message) const;
  void send_to_others(const nlohmann::json& message) const;
  nlohmann::json receive(int rank) const;
  std::optional<nlohmann::json> try_receive(int rank) const;

 private:
  void gather_ranks();

  int rank_ = 0;
  int size_ = 1;
  int thread_level_ = 0;
  std::string transport_;
  MPI_Comm control_ = MPI_COMM_NULL;
  MPI_Comm messages_ = MPI_COMM_NULL;
  MPI_Comm headers_ = MPI_COMM_NULL;
  std::vector<std::string> hosts_;
  std::vector<std::string> ranks_;  // of each rank, the JSON of hello
};

void sleep_for(double seconds);

// How often whoever waits looks again: often enough to cost the measured time little, seldom enough to leave the core free.
inline constexpr double kPollInterval = 100e-6;  // s

}  // namespace elbowroom
