#include "simulate/request.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace elbowroom::simulate {
namespace {

using Json = nlohmann::json;

constexpr Time kLongest = 1'000'000'000'000;  // a second: far beyond any experiment, and sums of it still fit
constexpr int kMost = 100'000;                // of anything that is counted

[[noreturn]] void refuse(const std::string& field, const Json& value, const std::string& wanted) {
  throw std::invalid_argument(field + " " + value.dump() + ": " + wanted);
}

const Json& member(const Json& object, const std::string& field) {
  if (!object.is_object() || !object.contains(field)) throw std::invalid_argument(field + ": is missing");
  return object.at(field);
}

template <typename Number>
Number number(const Json& object, const std::string& field, Number least, Number most) {
  const Json& value = member(object, field);
  const bool fits = std::is_integral_v<Number> ? value.is_number_integer() : value.is_number();
  if (!fits || value.get<double>() < static_cast<double>(least) || value.get<double>() > static_cast<double>(most)) {
    refuse(field, value, "is not between " + std::to_string(least) + " and " + std::to_string(most));
  }
  return value.get<Number>();
}

int count(const Json& object, const std::string& field, int least = 1, int most = kMost) {
  return number<int>(object, field, least, most);
}

Time duration(const Json& object, const std::string& field, Time least = 0) {
  return number<Time>(object, field, least, kLongest);
}

bool flag(const Json& object, const std::string& field) {
  const Json& value = member(object, field);
  if (!value.is_boolean()) refuse(field, value, "is neither true nor false");
  return value.get<bool>();
}

Node node_of(const Json& json) {
  Node node;
  node.sockets = count(json, "sockets", 1, 2);
  node.nodes_per_socket = count(json, "nodes_per_socket", 1, 64);
  node.uplink_read = duration(json, "uplink_read");
  node.uplink_write = duration(json, "uplink_write");
  node.link_line = duration(json, "link_line");
  node.link_request = duration(json, "link_request");
  node.link_credits = count(json, "link_credits");
  node.root_line = duration(json, "root_line");
  node.channels = count(json, "channels", 1, kMostChannels);
  node.banks = count(json, "banks", 1, 1024);
  node.lines_per_channel = count(json, "lines_per_channel");
  node.lines_per_row = count(json, "lines_per_row");
  if (node.lines_per_row % node.lines_per_channel != 0) {
    refuse("lines_per_row", json.at("lines_per_row"), "is not a multiple of lines_per_channel");
  }
  node.row = duration(json, "row");
  node.read_line = duration(json, "read_line", 1);
  node.write_line = duration(json, "write_line", 1);
  node.turnaround = duration(json, "turnaround");
  node.read_queue = count(json, "read_queue");
  node.write_queue = count(json, "write_queue");
  node.write_batch = count(json, "write_batch", 1, node.write_queue);
  node.lookahead = count(json, "lookahead");
  node.round_robin = flag(json, "round_robin");
  return node;
}

Way way_of(const Json& json, const std::string& field) {
  const Json& value = member(json, field);
  if (!value.is_array() || value.size() != 3) refuse(field, value, "is not three times: forward, hop, back");
  Way way;
  Time* const parts[] = {&way.forward, &way.hop, &way.back};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!value[i].is_number_integer() || value[i].get<double>() < 0 ||
        value[i].get<double>() > static_cast<double>(kLongest)) {
      refuse(field, value, "has a part that is not a time");
    }
    *parts[i] = value[i].get<Time>();
  }
  return way;
}

std::vector<Access> pattern_of(const Json& json) {
  const Json& value = member(json, "pattern");
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  if (text.empty() || text.size() > kMostAccesses) refuse("pattern", value, "is not one to eight of R, N and W");
  std::vector<Access> pattern;
  for (const char letter : text) {
    if (letter == 'R') {
      pattern.push_back(Access::read);
    } else if (letter == 'N') {
      pattern.push_back(Access::store);
    } else if (letter == 'W') {
      pattern.push_back(Access::allocate);
    } else {
      refuse("pattern", value, "is not one to eight of R, N and W");
    }
  }
  return pattern;
}

Source source_of(const Json& json, const Node& node) {
  Source source;
  source.device = flag(json, "device");
  source.count = count(json, "count");
  source.socket = count(json, "socket", 0, node.sockets - 1);
  source.node = count(json, "node", 0, node.nodes() - 1);
  source.window = count(json, "window");
  source.pattern = pattern_of(json);
  source.interval = duration(json, "interval");
  source.think = duration(json, "think");
  source.read = way_of(json, "read");
  source.write = way_of(json, "write");
  source.memory_work = number<double>(json, "memory_work", 1e-3, 1e3);
  source.uplink_work = number<double>(json, "uplink_work", 1e-3, 1e3);
  if (json.contains("messages")) {
    const Json& item = json.at("messages");
    if (source.count != 1) refuse("count", json.at("count"), "is not 1, and it exchanges messages");
    Messages messages;
    messages.lines = count(item, "lines", 1, std::numeric_limits<int>::max());
    messages.threads = count(item, "threads");
    messages.accesses = count(item, "accesses", 0);
    messages.pause = duration(item, "pause");
    messages.socket = count(item, "socket", 0, node.sockets - 1);
    messages.way = way_of(item, "way");
    source.messages = messages;
  }
  return source;
}

Experiment experiment_of(const Json& json, const Node& node) {
  Experiment experiment;
  experiment.seed = number<std::uint64_t>(json, "seed", 0, std::numeric_limits<std::uint32_t>::max());
  experiment.warm = duration(json, "warm");
  experiment.measure = duration(json, "measure", 1);
  experiment.jitter = number<double>(json, "jitter", 0.0, 1.0);
  const Json& sources = member(json, "sources");
  if (!sources.is_array() || sources.empty()) refuse("sources", sources, "is not a list of sources");
  std::size_t under_way = 0;
  for (const Json& item : sources) {
    const Source source = source_of(item, node);
    under_way += static_cast<std::size_t>(source.count) * static_cast<std::size_t>(source.window);
    if (under_way > 10'000'000) refuse("window", item.at("window"), "makes more than 1e7 lines under way at once");
    experiment.sources.push_back(source);
  }
  return experiment;
}

}  // namespace

Request decoded(const std::string& line) {
  Json json;
  try {
    json = Json::parse(line);
  } catch (const Json::parse_error& error) {
    throw std::invalid_argument(std::string("request: is not JSON: ") + error.what());
  }
  Request request;
  request.node = node_of(member(json, "node"));
  const Json& experiments = member(json, "experiments");
  if (!experiments.is_array()) refuse("experiments", experiments, "is not a list");
  for (const Json& item : experiments) request.experiments.push_back(experiment_of(item, request.node));
  return request;
}

std::string encoded(const Experiment& experiment, const Result& result, double seconds) {
  Json sources = Json::array();
  for (const SourceResult& source : result.sources) {
    sources.push_back(
        {{"lines", source.lines},
         // Bytes in a microsecond are MB/s.
         {"bandwidth", static_cast<double>(source.lines) * kLine / (1e-6 * static_cast<double>(experiment.measure))},
         {"messages", source.messages},
         {"mean_ns", 1e-3 * source.mean_latency},
         {"d9_ns", 1e-3 * source.d9_latency}});
  }
  return Json{
      {"sources", sources},
      {"use",
       {{"uplinks", result.uplinks}, {"links", result.links}, {"roots", result.roots}, {"memories", result.memories}}},
      {"requests", result.requests},
      {"seconds", seconds}}
      .dump();
}

std::string encoded_error(const std::string& message) { return Json{{"error", message}}.dump(); }

}  // namespace elbowroom::simulate
