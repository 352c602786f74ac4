// The simulator of clocks: reads a request from stdin, one JSON object a line, and answers each by a line.
#include <array>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "simulation.hpp"

namespace elbowroom::clock {
namespace {

using Json = nlohmann::json;

constexpr std::array<const char*, 6> kClocks = {"affine", "thermal", "walk", "steps", "slewing", "mixed"};
constexpr std::array<const char*, 5> kLinks = {"symmetric", "asymmetric", "lossy", "heavy-tail", "busy"};
constexpr std::int64_t kLongest = 1'000'000'000'000'000;  // ns: 11 days
constexpr double kMostPoints = 2e6;

[[noreturn]] void refuse(const std::string& field, const Json& value, const std::string& wanted) {
  throw std::invalid_argument(field + " " + value.dump() + ": " + wanted);
}

template <typename Number>
Number number(const Json& object, const char* field, Number least, Number most, Number otherwise) {
  if (!object.contains(field)) {
    return otherwise;
  }
  const Json& value = object.at(field);
  const bool fits = std::is_integral_v<Number> ? value.is_number_integer() : value.is_number();
  if (!fits || value.get<double>() < static_cast<double>(least) || value.get<double>() > static_cast<double>(most)) {
    refuse(field, value, "is not between " + std::to_string(least) + " and " + std::to_string(most));
  }
  return value.get<Number>();
}

template <typename Kind, std::size_t count>
Kind kind(const Json& object, const char* field, const std::array<const char*, count>& names, Kind otherwise) {
  if (!object.contains(field)) {
    return otherwise;
  }
  std::string known;
  for (std::size_t i = 0; i < count; ++i) {
    if (object.at(field) == names[i]) {
      return static_cast<Kind>(i);
    }
    known += (i == 0 ? "" : ", ") + std::string(names[i]);
  }
  refuse(field, object.at(field), "is none of " + known);
}

Json flags_of(const CorrectionFlags& flags) {
  Json result = Json::array();
  const auto add = [&](bool is, const char* name) {
    if (is) {
      result.push_back(name);
    }
  };
  add(flags.none, "none");
  add(flags.single, "single");
  add(flags.backwards, "backwards");
  add(flags.rejected > 0, "rejected");
  add(flags.steps > 0, "stepped");
  add(flags.jumped > 0, "jumped");
  add(flags.unlocated > 0, "unlocated");
  return result;
}

Json shown_of(const Shown& shown) {
  Json points = Json::array();
  for (const auto& [point, used] : shown.points) {
    points.push_back({{"local", point.local},
                      {"offset", point.offset.offset},
                      {"low", point.offset.low},
                      {"high", point.offset.high},
                      {"used", used}});
  }
  Json segments = Json::array();
  for (const Segment& segment : shown.segments) {
    segments.push_back({{"from", segment.from},
                        {"to", segment.to},
                        {"offset_ns", segment.offset},
                        {"drift_ppb", segment.drift_ppb},
                        {"error_ns", segment.error},
                        {"stepped", segment.stepped}});
  }
  Json errors = Json::array();
  for (const ShownError& error : shown.errors) {
    errors.push_back({{"local", error.local}, {"error_ns", error.error}, {"bound_ns", error.bound}});
  }
  return {{"rank", shown.clock},
          {"host", "simulated"},
          {"points", points},
          {"segments", segments},
          {"flags", flags_of(shown.flags)},
          {"errors", errors}};
}

// What the simulator of clocks is asked, and what it answers: one JSON object each.
// Throws std::invalid_argument: which field, which value, what would do.
Plan plan_of(const std::string& request) {
  Json json;
  try {
    json = Json::parse(request);
  } catch (const Json::parse_error& error) {
    throw std::invalid_argument(std::string("request: is not JSON: ") + error.what());
  }
  if (!json.is_object()) {
    refuse("request", json, "is not an object");
  }
  Plan plan;
  plan.clocks = number(json, "clocks", 1, 65'536, plan.clocks);
  plan.duration = number(json, "duration_ns", std::int64_t{1}, kLongest, plan.duration);
  plan.every = number(json, "every_ns", std::int64_t{1}, kLongest, plan.every);
  plan.clock = kind(json, "clock", kClocks, plan.clock);
  plan.link = kind(json, "link", kLinks, plan.link);
  plan.bad = number(json, "bad", 0.0, 0.5, plan.bad);
  plan.seed = number(json, "seed", std::uint64_t{0}, std::uint64_t{1} << 53, plan.seed);
  plan.shown = number(json, "shown", 0, 64, plan.shown);
  const double points =
      static_cast<double>(plan.clocks) * (static_cast<double>(plan.duration) / static_cast<double>(plan.every) + 1);
  if (points > kMostPoints) {
    throw std::invalid_argument(
        "clocks " + std::to_string(plan.clocks) + ": make " + std::to_string(static_cast<std::int64_t>(points)) +
        " points, and 2e6 are simulated at most; fewer clocks, or a longer time between points");
  }
  return plan;
}

std::string answer_of(const Plan& plan, const Outcome& outcome) {
  Json methods = Json::array();
  for (const Judged& judged : outcome.methods) {
    methods.push_back({{"name", judged.name},
                       {"p50_ns", judged.p50},
                       {"p95_ns", judged.p95},
                       {"max_ns", judged.most},
                       {"bound_p50_ns", judged.bound_p50},
                       {"inside", judged.inside},
                       {"unflagged", judged.unflagged},
                       {"tachyons", judged.tachyons}});
  }
  Json shown = Json::array();
  for (const Shown& one : outcome.shown) {
    shown.push_back(shown_of(one));
  }
  return Json{{"clocks", plan.clocks},
              {"duration_ns", plan.duration},
              {"every_ns", plan.every},
              {"clock", kClocks.at(static_cast<std::size_t>(plan.clock))},
              {"link", kLinks.at(static_cast<std::size_t>(plan.link))},
              {"bad", plan.bad},
              {"seed", plan.seed},
              {"rounds", outcome.rounds},
              {"comparisons", outcome.comparisons},
              {"exchanges", outcome.exchanges},
              {"longest_ns", outcome.longest},
              {"points", outcome.points},
              {"corrupted", outcome.corrupted},
              {"rejected", outcome.rejected},
              {"steps", outcome.steps},
              {"incomparable", outcome.incomparable},
              {"messages", outcome.messages},
              {"methods", methods},
              {"ranks", shown}}
      .dump();
}

std::string answer_of_error(const std::string& sentence) { return Json{{"error", sentence}}.dump(); }

}  // namespace
}  // namespace elbowroom::clock

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      const elbowroom::clock::Plan plan = elbowroom::clock::plan_of(line);
      std::cout << elbowroom::clock::answer_of(plan, elbowroom::clock::simulate(plan)) << std::endl;
    } catch (const std::exception& error) {
      std::cout << elbowroom::clock::answer_of_error(error.what()) << std::endl;
      return 1;
    }
  }
  return 0;
}
