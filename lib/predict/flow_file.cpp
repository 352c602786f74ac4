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

// A parameter, and what it is where the file does not name it; without that it must.
struct Wanted {
  std::string name;
  std::optional<double> otherwise;
};

// The rows `values` and `draws`, ordered as `wanted`. Other parameters are passed over.
std::vector<std::vector<double>> read_vectors(const Place& place, const std::vector<Wanted>& wanted) {
  std::vector<std::string> names;
  for (const Place& name : place.at("names").list()) {
    names.push_back(name.text());
  }
  std::vector<std::size_t> order;
  for (const Wanted& one : wanted) {
    const auto found = std::find(names.begin(), names.end(), one.name);
    if (found == names.end() && !one.otherwise) {
      refuse(place.path() + ".names", "lacks " + one.name);
    }
    order.push_back(static_cast<std::size_t>(found - names.begin()));
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
  std::vector<std::vector<double>> found;
  for (const Place& row : rows) {
    std::vector<double> numbers;
    for (const Place& value : row.list()) {
      numbers.push_back(value.number());
    }
    if (numbers.size() != names.size()) {
      refuse(row.path(),
             std::to_string(numbers.size()) + " numbers for " + std::to_string(names.size()) + " parameters");
    }
    std::vector<double>& ordered = found.emplace_back();
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      ordered.push_back(order[k] < numbers.size() ? numbers[order[k]] : *wanted[k].otherwise);
    }
  }
  return found;
}

std::vector<double> read_switches(const Place& place) {
  std::vector<double> found;
  for (const Place& size : place.list()) {
    found.push_back(size.number());
    if (found.back() < 0 || (found.size() > 1 && found[found.size() - 2] >= found.back())) {
      refuse(size.path(), "is not above the one before");
    }
  }
  if (found.size() > kMostSwitches) {
    refuse(place.path(), "are more than " + std::to_string(kMostSwitches));
  }
  return found;
}

double read_optional(const Place& place, const char* key) { return place.has(key) ? place.at(key).number() : 0.0; }

LoadPart read_load(const Place& place) {
  LoadPart found;
  if (place.has("switches")) {
    found.extension.switches = read_switches(place.at("switches"));
  }
  std::vector<Wanted> wanted;
  for (const LoadName& one : kLoadNames) {
    wanted.push_back({one.name, one.neutral});
  }
  for (std::size_t r = 0; r <= found.extension.switches.size(); ++r) {
    wanted.push_back({"latency_" + std::to_string(r), 1.0});
    wanted.push_back({"speed_" + std::to_string(r), 1.0});
  }
  found.extension.vectors = read_vectors(place, wanted);
  for (const Place& name : place.at("names").list()) {
    found.has_latency = found.has_latency || name.text() == "latency_0";
  }
  found.extension.intensity = read_optional(place, "intensity");
  found.intensity_high = read_optional(place, "intensity_high");
  found.size_low = read_optional(place, "size_low");
  found.size_high = read_optional(place, "size_high");
  if (place.has("discrepancy")) {
    found.discrepancy = read_streams(place.at("discrepancy"));
  }
  if (place.has("measured")) {
    for (const Place& told : place.at("measured").list()) {
      for (const auto& [name, question] : kQuestions) {
        found.measured |= told.text() == name ? question : 0U;
      }
    }
  }
  return found;
}

}  // namespace

FlowPart read_flow(const Place& place) {
  FlowPart found;
  std::vector<Wanted> wanted;
  for (const char* name : kFlowNames) {
    wanted.push_back({name, std::nullopt});
  }
  found.vectors = read_vectors(place, wanted);
  if (place.has("discrepancy")) {
    found.discrepancy = read_streams(place.at("discrepancy"));
  }
  found.local = found.remote = found.both = found.discrepancy;
  if (place.has("discrepancies")) {
    const Place sides = place.at("discrepancies");
    found.local = read_streams(sides.at("local"));
    found.remote = read_streams(sides.at("remote"));
    found.both = read_streams(sides.at("both"));
  }
  if (place.has("load")) {
    found.load = read_load(place.at("load"));
    const std::size_t rows = found.load->extension.vectors.size();
    if (rows != found.vectors.size()) {
      refuse(place.path() + ".load.draws", std::to_string(rows - 1) + " sets of parameters beside " +
                                               std::to_string(found.vectors.size() - 1) + " of FLOW");
    }
  }
  return found;
}

}  // namespace elbowroom::predict
