// The program: broadcasts from rank 0, and a kernel on the computing cores of the rank that forwards most.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "broadcast/stream.hpp"
#include "common/serve.hpp"
#include "machine/machine.hpp"
#include "observe/observer.hpp"
#include "protocol/pool.hpp"
#include "protocol/request.hpp"

namespace elbowroom::forwarding {

// A computing thread with its memory.
struct Cruncher {
  Arena memory;
  ComputingJob job;
};

class Forwarder : public program::Program {
 public:
  // Refuses threads that would share a core where one of them computes. Collective; throws RequestError on all ranks alike.
  Forwarder(const Job& job, const program::Settings& settings);

  nlohmann::json facts() const override;
  nlohmann::json answer(const nlohmann::json& request) override;

 private:
  struct PointRequest;
  PointRequest read_point(const nlohmann::json& request) const;
  void read_program(const nlohmann::json& program);
  void take_cores(const program::Settings& settings);
  void prepare(const PointRequest& request);
  bool computes() const { return job_.rank() == kInner; }
  nlohmann::json phase(const PointRequest& request, Phase phase, int index);
  bool start_computing(const PointRequest& request);
  Window compute_alone(const PointRequest& request, bool steady);
  Window communicate(const PointRequest& request, StreamReport& stream);
  nlohmann::json own_report(Phase phase, const Window& window, const StreamReport& stream);
  nlohmann::json facts_of(const PointRequest& request) const;

  const Job& job_;
  std::string kernel_;
  std::string tree_;
  std::size_t segment_ = 0;
  Placement placement_;
  int bound_ = -1;               // processing unit of the communication thread
  std::set<std::string> flags_;  // of where the threads are
  ComputingPool pool_;
  std::size_t working_set_ = 0;  // bytes of each computing thread
  std::vector<Cruncher> crunchers_;
  std::unique_ptr<PhaseObserver> observer_;
  std::optional<Stream> stream_;
  std::map<std::string, std::uint64_t> counted_;  // on the computing rank, in this repetition
};

}  // namespace elbowroom::forwarding
