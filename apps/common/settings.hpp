// What a program is started with (elbowroom.launch.programs.settings): itself, and where its ranks are.
#pragma once

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "exchange/job.hpp"
#include "protocol/request.hpp"

namespace elbowroom::program {

struct Settings {
  nlohmann::json program;       // name, task, build, ranks and what else the task needs
  Placement first;              // of rank 0, and of ranks on other hosts
  std::vector<int> peer_cores;  // communication cores of other ranks on rank 0's host; empty: rank 0's
  std::vector<std::pair<int, Placement>> placements;  // by rank; overrides those above
  bool scheduling = false;  // two threads on one core are wanted (flagged; docs/design/method.md, rule 4)

  Placement placement(int rank, bool same_host) const;
};

// Reads types; throws RequestError. Looks at no machine.
Settings read_settings(const nlohmann::json& object);

// The settings in a file that only rank 0 need see. Collective.
Settings settings_from(const Job& job, const std::string& path);

}  // namespace elbowroom::program
