// The probe's conversation (docs/reference/protocol.md), held by a program: hello, then one answer for each line.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/request_error.hpp"
#include "common/settings.hpp"
#include "exchange/job.hpp"

namespace elbowroom::program {

// What a program adds to the conversation. All ranks do the same in the same order.
class Program {
 public:
  virtual ~Program() = default;
  // What hello says beside ranks, MPI and clock.
  virtual nlohmann::json facts() const = 0;
  // Answers a `measure` request: the record is rank 0's. Throws RequestError on all ranks alike (together.hpp), before
  // it has measured anything.
  virtual nlohmann::json answer(const nlohmann::json& request) = 0;
};

using Maker = std::function<std::unique_ptr<Program>(const Job&, const Settings&)>;

// Starts MPI at that thread level and runs `task` on each rank; returns its exit code. What it throws is reported under the
// program's name, and ends the whole job.
int with_ranks(const std::string& name, int argc, char** argv, const std::string& threads,
               const std::function<int(const Job&)>& task);

// These return the exit code, the same on all ranks: 0, 1 (the machine) or 2 (what was asked). Rank 0 writes to stdout, an
// `error` record where what is called throws RequestError. Collective.

// Runs `task`, whose exit code is returned where it does not throw.
int answered(const Job& job, const std::function<int()>& task);
// Calls `task` with the settings of that file, which only rank 0 need see.
int with_settings(const Job& job, const std::string& config, const std::function<void(const Settings&)>& task);
// Makes the program with these settings, says hello, and answers requests on stdin until its end.
int serve(const Job& job, const std::string& config, const Maker& make);

// The `error` record of docs/reference/protocol.md, for the request of that point.
nlohmann::json error_record(const RequestError& error, const std::string& point = "");

}  // namespace elbowroom::program
