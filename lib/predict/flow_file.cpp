#include "flow_file.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "flow.hpp"
#include "flow_load.hpp"

namespace elbowroom::predict {
namespace {

// Far beyond any fit, so that a damaged number is found before memory is asked for.
constexpr std::size_t kMostDraws = 4096;
constexpr std::size_t kMostSwitches = 64;

constexpr std::pair<const char*, Question> kQuestions[] = {
    {"intensity", asks_intensity}, {"sizes", asks_sizes},   {"send", asks_send},   {"both", asks_both},
    {"threads", asks_threads},     {"copies", asks_copies}, {"nodes", asks_nodes},
};

}  // namespace

std::vector<std::vector<double>> read_vectors(const Place& place, const std::vector<Wanted>& wanted) {
  std::vector<std::string> names;
  for (const Place& name : place.at("names").list()) {
    names.push_back(name.text());
  }
  std::vector<std::size_t> order;
  for (const Wanted& one : wanted) {
    const auto entry = std::find(names.begin(), names.end(), one.name);
    if (entry == names.end() && !one.otherwise) {
      refuse(place.path() + ".names", "lacks " + one.name);
    }
    order.push_back(static_cast<std::size_t>(entry - names.begin()));
  }
  std::vector<Place> rows = {place.at("values")};
  if (place.has("draws")) {
    for (Place& draw : place.at("draws").list()) {
      rows.push_back(std::move(draw));
    }
  }
  if (rows.size() > kMostDraws + 1) {
    refuse(place.path() + ".draws", "are more than " + std::to_string(kMostDraws));
  }
  std::vector<std::vector<double>> entry;
  for (const Place& row : rows) {
    std::vector<double> numbers;
    for (const Place& value : row.list()) {
      numbers.push_back(value.number());
    }
    if (numbers.size() != names.size()) {
      refuse(row.path(),
             std::to_string(numbers.size()) + " numbers for " + std::to_string(names.size()) + " parameters");
    }
    std::vector<double>& ordered = entry.emplace_back();
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      ordered.push_back(order[k] < numbers.size() ? numbers[order[k]] : *wanted[k].otherwise);
    }
  }
  return entry;
}

namespace {

std::vector<double> read_switches(const Place& place) {
  std::vector<double> result;
  for (const Place& size : place.list()) {
    result.push_back(size.number());
    if (result.back() < 0 || (result.size() > 1 && result[result.size() - 2] >= result.back())) {
      refuse(size.path(), "is not above the one before");
    }
  }
  if (result.size() > kMostSwitches) {
    refuse(place.path(), "are more than " + std::to_string(kMostSwitches));
  }
  return result;
}

double read_optional(const Place& place, const char* key) { return place.has(key) ? place.at(key).number() : 0.0; }

LoadPart read_load(const Place& place) {
  LoadPart result;
  if (place.has("switches")) {
    result.extension.switches = read_switches(place.at("switches"));
  }
  std::vector<Wanted> wanted;
  for (const LoadName& one : kLoadNames) {
    wanted.push_back({one.name, one.neutral});
  }
  for (std::size_t r = 0; r <= result.extension.switches.size(); ++r) {
    wanted.push_back({"latency_" + std::to_string(r), 1.0});
    wanted.push_back({"speed_" + std::to_string(r), 1.0});
  }
  result.extension.vectors = read_vectors(place, wanted);
  for (const Place& name : place.at("names").list()) {
    result.has_latency = result.has_latency || name.text() == "latency_0";
  }
  result.extension.intensity = read_optional(place, "intensity");
  result.intensity_high = read_optional(place, "intensity_high");
  result.size_low = read_optional(place, "size_low");
  result.size_high = read_optional(place, "size_high");
  if (place.has("discrepancy")) {
    result.discrepancy = read_streams(place.at("discrepancy"));
  }
  if (place.has("measured")) {
    for (const Place& question_name : place.at("measured").list()) {
      for (const auto& [name, question] : kQuestions) {
        result.measured |= question_name.text() == name ? question : 0U;
      }
    }
  }
  return result;
}

}  // namespace

FlowPart read_flow(const Place& place) {
  FlowPart result;
  std::vector<Wanted> wanted;
  for (const char* name : kFlowNames) {
    wanted.push_back({name, std::nullopt});
  }
  result.vectors = read_vectors(place, wanted);
  if (place.has("discrepancy")) {
    result.discrepancy = read_streams(place.at("discrepancy"));
  }
  result.local = result.remote = result.both = result.discrepancy;
  if (place.has("discrepancies")) {
    const Place sides = place.at("discrepancies");
    result.local = read_streams(sides.at("local"));
    result.remote = read_streams(sides.at("remote"));
    result.both = read_streams(sides.at("both"));
  }
  if (place.has("load")) {
    result.load = read_load(place.at("load"));
    const std::size_t rows = result.load->extension.vectors.size();
    if (rows != result.vectors.size()) {
      refuse(place.path() + ".load.draws", std::to_string(rows - 1) + " sets of parameters beside " +
                                               std::to_string(result.vectors.size() - 1) + " of FLOW");
    }
  }
  return result;
}

}  // namespace elbowroom::predict
