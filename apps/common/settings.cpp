#include "common/settings.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "common/together.hpp"

namespace elbowroom::program {
namespace {

using nlohmann::json;

template <typename Value>
void read(const json& object, const char* key, Value& value) {
  if (!object.contains(key)) {
    return;
  }
  try {
    object.at(key).get_to(value);
  } catch (const json::exception&) {
    throw RequestError(key, object.at(key).dump(), "is of another type", "see docs/reference/protocol.md");
  }
}

Placement read_placement(const json& object) {
  Placement placement;
  read(object, "comp_cores", placement.comp_cores);
  read(object, "comm_cores", placement.comm_cores);
  read(object, "comp_node", placement.comp_node);
  read(object, "comm_node", placement.comm_node);
  if (placement.comm_cores.empty()) {
    throw RequestError("comm_cores", "[]", "no core for communications", "name at least one");
  }
  return placement;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) {
    throw RequestError("config", path, fmt::format("cannot be read ({})", std::strerror(errno)), "name a JSON file");
  }
  return text.str();
}

}  // namespace

Placement Settings::placement(int rank, bool same_host) const {
  for (const auto& [number, placement] : placements) {
    if (number == rank) {
      return placement;
    }
  }
  Placement found = first;
  if (rank != 0 && same_host && !peer_cores.empty()) {
    found.comm_cores = peer_cores;
  }
  return found;
}

Settings read_settings(const json& object) {
  if (!object.is_object()) {
    throw RequestError("config", object.dump().substr(0, 80), "is not a JSON object", "see docs/reference/protocol.md");
  }
  Settings settings;
  settings.first = read_placement(object);
  read(object, "peer_cores", settings.peer_cores);
  read(object, "scheduling", settings.scheduling);
  read(object, "program", settings.program);
  if (!settings.program.is_object() || !settings.program.contains("task")) {
    throw RequestError("program", settings.program.dump(), "names no task", "see docs/reference/protocol.md");
  }
  std::vector<json> placements;
  read(object, "placements", placements);
  for (const json& one : placements) {
    int rank = 0;
    read(one, "rank", rank);
    settings.placements.emplace_back(rank, read_placement(one));
  }
  return settings;
}

Settings settings_from(const Job& job, const std::string& path) {
  json object;
  together(job, [&] {
    if (job.rank() == 0) {
      object = json::parse(text_of(path), nullptr, false);
      if (object.is_discarded()) {
        throw RequestError("config", path, "is not JSON", "see docs/reference/protocol.md");
      }
    }
  });
  if (job.rank() == 0) {
    job.send_to_others(object);
  } else {
    object = job.receive(0);
  }
  return read_settings(object);
}

}  // namespace elbowroom::program
