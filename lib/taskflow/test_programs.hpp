// Random task programs for the tests: each process runs its part over a loopback network, with a submission window, and the
// result must be that of the program run task by task.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "broadcast/engine.hpp"
#include "graph.hpp"

namespace elbowroom::taskflow {

struct ProgramTask {
  std::vector<Use> uses;
  int priority = 0;
  int rank = 0;
  std::size_t expected = 0;  // recipients that are announced for the first data it uses, before it is submitted
};

struct ProgramData {
  std::size_t size = 8;
  int owner = 0;
};

struct Program {
  std::uint64_t seed = 0;
  int ranks = 1;
  std::size_t window = 0;  // tasks of a process that are not over when it submits the next one; 0: all
  Settings settings;
  broadcast::Settings transport;
  broadcast::Way way;
  std::vector<ProgramData> data;
  std::vector<ProgramTask> tasks;
};

Program random_program(std::uint64_t seed);

// Nothing where all data have the contents that the tasks give them in sequence, and nothing is left; else what went wrong.
std::optional<std::string> run(const Program& program);

// The fewest tasks of the program that still fail.
Program shrunk(Program program);
std::string describe(const Program& program);

}  // namespace elbowroom::taskflow
