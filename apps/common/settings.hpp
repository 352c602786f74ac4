// What a program is started with (docs/reference/protocol.md): itself, and where its ranks are.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/request_error.hpp"
#include "protocol/request.hpp"

namespace elbowroom::program {

inline constexpr int kNearest = -1;  // the NUMA node of the first core of the threads that use the memory

struct Settings {
  nlohmann::json program;       // its name and what else it needs
  Placement first;              // of rank 0, and of ranks on other hosts
  std::vector<int> peer_cores;  // communication cores of other ranks on rank 0's host; empty: rank 0's
  std::vector<std::pair<int, Placement>> placements;  // by rank; overrides those above
  bool scheduling = false;  // two threads on one core are wanted (flagged; docs/design/method.md, rule 4)

  Placement placement(int rank, bool same_host) const;
};

// Reads types and names, refuses unknown keys; throws RequestError. Looks at no machine.
Settings read_settings(const nlohmann::json& object);

// The value of a key, or `otherwise` without it. Throws RequestError where it is of another type.
template <typename Value>
Value read(const nlohmann::json& object, const char* key, const Value& otherwise) {
  try {
    return object.value(key, otherwise);
  } catch (const nlohmann::json::exception&) {
    throw RequestError(key, object.at(key).dump(), "is of another type", "see docs/reference/protocol.md");
  }
}

// Throws RequestError where the settings of a program name another build of it, or another number of ranks.
void check_build(const nlohmann::json& program, const std::string& build, int ranks);

// Throws RequestError where `object`, called `what`, is not a JSON object or has other keys than those.
void check_keys(const nlohmann::json& object, const std::string& what, std::initializer_list<const char*> known);

}  // namespace elbowroom::program
