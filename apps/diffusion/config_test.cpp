#include "diffusion/config.hpp"

#include <doctest/doctest.h>

#include "common/sharing.hpp"
#include "machine/machine.hpp"

namespace elbowroom::diffusion {
namespace {

using nlohmann::json;
using program::node_of;
using program::Seat;
using program::Sharing;
using program::sharing_of;
using program::take_seat;
using program::Waiting;

std::string field_refused(const json& config) {
  try {
    read_config(config);
  } catch (const RequestError& error) {
    return error.field;
  }
  return "";
}

json with(const std::string& key, const json& value) {
  json config = {{"name", "diffusion"}, {"resolution", 4}};
  config[key] = value;
  return config;
}

json settings_with(const std::string& key, const json& value) {
  json settings = {{"program", json::object()}, {"comp_cores", {1}}, {"comm_cores", {0}}};
  settings[key] = value;
  return settings;
}

std::string setting_refused(const json& settings) {
  try {
    program::read_settings(settings);
  } catch (const RequestError& error) {
    return error.field;
  }
  return "";
}

TEST_CASE("placements replace what they name") {
  const auto settings =
      program::read_settings(settings_with("placements", {{{"rank", 1}, {"comp_cores", {3, 4}}, {"comm_node", 2}}}));
  CHECK(settings.placement(0, true).comp_cores == std::vector<int>{1});
  CHECK(settings.placement(1, true).comp_cores == std::vector<int>{3, 4});
  CHECK(settings.placement(1, true).comm_cores == std::vector<int>{0});
  CHECK(settings.placement(1, true).comp_node == program::kNearest);
  CHECK(settings.placement(1, true).comm_node == 2);
}

TEST_CASE("settings of another form are refused by the name of their key") {
  CHECK(setting_refused(settings_with("comm_cores", 0)) == "comm_cores");
  CHECK(setting_refused(settings_with("cells", 1000)) == "cells");
  CHECK(setting_refused(settings_with("program", "diffusion")) == "program");
  CHECK(setting_refused(settings_with("placements", {{{"comp_cores", {1}}}})) == "placements");
  CHECK(setting_refused(json::array()) == "config");
}

TEST_CASE("a program is read") {
  const Config config = read_config(with("kappa", {1, 0.5}));
  CHECK(config.cubes == std::array<int, 3>{4, 4, 4});
  CHECK(config.kappa == std::array<double, 2>{1, 0.5});
}

TEST_CASE("wrong values are refused by the name of their key") {
  CHECK(field_refused(with("resolution", 0)) == "resolution");
  CHECK(field_refused(with("resolution", {1, 2})) == "resolution");
  CHECK(field_refused(with("cells", 1000)) == "resolution");
  CHECK(field_refused(with("kappa", -1)) == "kappa");
  CHECK(field_refused(with("kappa", {1, 2, 3})) == "kappa");
  CHECK(field_refused(with("dt", 0)) == "dt");
  CHECK(field_refused(with("reorder", "random")) == "reorder");
  CHECK(field_refused(with("partitioner", 3)) == "partitioner");
  CHECK(field_refused(with("check", "yes")) == "check");
  CHECK(field_refused(with("chekc", true)) == "chekc");
  CHECK(field_refused(json::array()) == "program");
}

TEST_CASE("a request names a variant, and counts within limits") {
  CHECK(read_steps({{"variant", "apart"}}).steps == 20);
  CHECK_THROWS_AS(read_steps({{"steps", 3}}), RequestError);
  CHECK_THROWS_AS(read_steps({{"variant", "both"}}), RequestError);
  CHECK_THROWS_AS(read_steps({{"variant", "none"}, {"steps", 0}}), RequestError);
  CHECK_THROWS_AS(read_steps({{"variant", "none"}, {"warmup", -1}}), RequestError);
  CHECK_THROWS_AS(read_steps({{"variant", "none"}, {"steps", kMostSteps + 1}}), RequestError);
  CHECK_THROWS_AS(read_steps({{"variant", "none"}, {"point", 1}}), RequestError);
}

TEST_CASE("threads on one core are seen: each other's, and those of other ranks of the host") {
  const Seat own{"a", {1}, {0}};
  CHECK_FALSE(sharing_of({own, {"b", {1}, {0}}}, 0).computing);
  CHECK(sharing_of({own, {"b", {1}, {0}}}, 0).waiting == Waiting::spin);
  const Sharing communicating = sharing_of({own, {"a", {2}, {0}}}, 0);
  CHECK_FALSE(communicating.computing);
  CHECK(communicating.waiting == Waiting::yield);
  CHECK(communicating.cores == std::vector<int>{0});
  const Sharing computing = sharing_of({own, {"a", {1}, {0}}}, 1);
  CHECK(computing.computing);
  CHECK(computing.waiting == Waiting::yield);
  CHECK(computing.cores == std::vector<int>{0, 1});
  CHECK(sharing_of({{"a", {1}, {1}}}, 0).waiting == Waiting::sleep);
}

TEST_CASE("a core twice, one that does not exist, and one for both kinds of thread are refused") {
  const int core = Machine::here().cores().front().number;
  CHECK_THROWS_WITH_AS(take_seat({{core, core}, {core}, 0, 0}, "a", true), doctest::Contains("is used twice"),
                       RequestError);
  CHECK_THROWS_AS(take_seat({{100000}, {core}, 0, 0}, "a", false), RequestError);
  CHECK_THROWS_WITH_AS(take_seat({{core}, {core}, 0, 0}, "a", false), doctest::Contains("is used twice"), RequestError);
  CHECK_NOTHROW(take_seat({{core}, {core}, 0, 0}, "a", true));
  CHECK_THROWS_AS(node_of("comp_node", 100000, core), RequestError);
}

}  // namespace
}  // namespace elbowroom::diffusion
