// Rank 0: reads requests, lets all ranks measure them, writes answers (docs/reference/protocol.md).
#pragma once

#include <exception>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "exchange/common_clock.hpp"
#include "exchange/job.hpp"
#include "exchange/keeper.hpp"
#include "exchange/station.hpp"
#include "protocol/line_source.hpp"

namespace elbowroom {

class Leader {
 public:
  explicit Leader(const Job& job);

  // Answers every request of `requests` on `answers`, one line each, flushed. Returns at the end of the stream, at
  // {"op": "quit"}, or when nobody reads the answers any more.
  void serve(LineSource& requests, std::ostream& answers);

 private:
  nlohmann::json hello() const;
  nlohmann::json answer(const std::string& line);
  void prepare_all(const nlohmann::json& json, const Request& request);
  void agree(const std::exception_ptr& own);
  nlohmann::json measure(const Request& request, nlohmann::json& arrays);
  nlohmann::json phase(const Request& request, Phase phase, int index);
  nlohmann::json extraneous(const Request& request);
  nlohmann::json overlap(nlohmann::json& arrays);
  Window computation_alone(const Request& request, bool& steady);
  Window communication(const Request& request, Phase phase, bool& steady);
  bool start_all_computing(const Request& request);
  bool peers_compute(const Request& request) const;
  nlohmann::json finish(Phase phase, const Window& window, bool steady, nlohmann::json record);
  nlohmann::json assemble(const Request& request, nlohmann::json phases);

  nlohmann::json measured(const Request& request);
  void hold_all(const Request& request);
  nlohmann::json release_all();
  void synchronise();

  const Job& job_;
  Station station_;
  CommonClock clock_;
  Keeper keeper_;  // of this rank's host
  std::uint64_t repetitions_ = 0;
};

// Every rank but 0: does what rank 0 says.
// Returns when rank 0 says quit.
void follow(const Job& job);

}  // namespace elbowroom
