#include "simulate/request.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "simulate/simulation.hpp"

using namespace elbowroom::simulate;
using Json = nlohmann::json;

namespace {

Json request() {
  return {{"node", {{"sockets", 1},        {"nodes_per_socket", 1}, {"uplink_read", 300},     {"uplink_write", 600},
                    {"link_line", 0},      {"link_request", 0},     {"link_credits", 1},      {"root_line", 1000},
                    {"channels", 6},       {"banks", 16},           {"lines_per_channel", 4}, {"lines_per_row", 128},
                    {"row", 45000},        {"read_line", 3500},     {"write_line", 5000},     {"turnaround", 15000},
                    {"write_batch", 16},   {"read_queue", 48},      {"write_queue", 48},      {"lookahead", 8},
                    {"round_robin", false}}},
          {"experiments",
           {{{"seed", 1},
             {"warm", 1000000},
             {"measure", 4000000},
             {"jitter", 0.1},
             {"sources",
              {{{"device", false},
                {"count", 2},
                {"socket", 0},
                {"node", 0},
                {"window", 10},
                {"pattern", "RW"},
                {"interval", 0},
                {"think", 0},
                {"read", {40000, 0, 40000}},
                {"write", {40000, 0, 40000}},
                {"memory_work", 1.0},
                {"uplink_work", 1.0}}}}}}}};
}

std::string refusal(const Json& json) {
  try {
    decoded(json.dump());
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a request is read whole, and its answer tells bandwidths in MB/s") {
  const Request read = decoded(request().dump());
  REQUIRE(read.experiments.size() == 1);
  const Experiment& experiment = read.experiments[0];
  CHECK(experiment.sources[0].pattern == std::vector<Access>{Access::read, Access::allocate});
  const Result result = simulate(read.node, experiment);
  const Json answer = Json::parse(encoded(experiment, result, 0.5));
  const double lines = answer["sources"][0]["lines"];
  CHECK(answer["sources"][0]["bandwidth"].get<double>() == doctest::Approx(lines * 64 / 4.0));
  CHECK(answer["use"]["memories"].size() == 1);
  CHECK(answer["seconds"] == 0.5);
}

TEST_CASE("what cannot be simulated is refused by name and value") {
  Json wrong = request();
  wrong["node"]["channels"] = 0;
  CHECK(refusal(wrong) == "channels 0: is not between 1 and 64");
  wrong = request();
  wrong["experiments"][0]["sources"][0]["node"] = 1;
  CHECK(refusal(wrong) == "node 1: is not between 0 and 0");
  wrong = request();
  wrong["experiments"][0]["sources"][0]["pattern"] = "RX";
  CHECK(refusal(wrong).find("pattern \"RX\"") == 0);
  wrong = request();
  wrong["experiments"][0].erase("measure");
  CHECK(refusal(wrong) == "measure: is missing");
  CHECK_THROWS_AS(decoded("{"), std::invalid_argument);
}
