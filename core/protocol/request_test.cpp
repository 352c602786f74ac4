#include "protocol/request.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <nlohmann/json.hpp>

using namespace elbowroom;
using nlohmann::json;

namespace {

json good() {
  return {{"op", "measure"},
          {"point", "p"},
          {"repetition", 3},
          {"sequence", {"A", "B", "AB"}},
          {"kernel", "triad"},
          {"comp_cores", {1}},
          {"comp_node", 0},
          {"working_set", 1 << 20},
          {"pattern", "pingpong"},
          {"size", 64},
          {"comm_node", 0},
          {"comm_cores", {0}},
          {"peer_cores", {0}},
          {"reuse", "same"},
          {"metric", "bandwidth"},
          {"window", 0.1},
          {"steady", {{"window", 5}, {"cov", 0.1}, {"limit", 2.0}}}};
}

Site two_cores() {
  return {{{0, {0, 4}, true}, {1, {1, 5}, true}, {2, {2, 6}, true}, {3, {3, 7}, false}}, {{0, 1 << 30}}};
}

// The error that a request with one field changed gives; field, value and hint are always there.
RequestError refused(const char* field, const json& value, const std::function<void(const Request&)>& check) {
  json changed = good();
  changed[field] = value;
  try {
    check(read_request(changed));
  } catch (const RequestError& error) {
    CHECK_FALSE(error.hint.empty());
    CHECK_FALSE(std::string(error.what()).empty());
    return error;
  }
  FAIL("not refused: " << field << " = " << value.dump());
  return RequestError("", "", "", "");
}

void unchecked(const Request&) {}

void on_this_site(const Request& request) {
  check_placement(request, placement_of(request, 0, true), rank_computes(request, 0), two_cores(), 2);
}

}  // namespace

TEST_CASE("a complete request is read field by field") {
  const Request request = read_request(good());
  CHECK(request.point == "p");
  CHECK(request.repetition == 3);
  CHECK(request.sequence == std::vector<Phase>{Phase::computation, Phase::communication, Phase::together});
  CHECK(request.first.comp_cores == std::vector<int>{1});
  CHECK(request.size == 64);
  CHECK_FALSE(request.latency);
  CHECK(request.steady_window == 5);
  CHECK(request.steady_cov == doctest::Approx(0.1));
  CHECK(request.steady_limit == doctest::Approx(2.0));
}

TEST_CASE("unknown names are refused and the known ones listed") {
  for (const char* field : {"kernel", "pattern", "reuse", "metric", "computing_ranks"}) {
    const RequestError error = refused(field, "nonsense", unchecked);
    CHECK(error.field == field);
    CHECK(error.value == "nonsense");
    CHECK(error.hint.substr(0, 6) == "known:");
  }
  CHECK(refused("sequence", json{"A", "C"}, unchecked).value == "C");
  CHECK(refused("sequence", json::array(), unchecked).field == "sequence");
}

TEST_CASE("values of a wrong type or out of range are refused") {
  CHECK(refused("size", "4", unchecked).field == "size");
  CHECK(refused("size", 0, unchecked).value == "0");
  CHECK(refused("size", -4, unchecked).value == "-4");
  CHECK(refused("size", 1e3, unchecked).field == "size");
  CHECK(refused("size", std::uint64_t{1} << 63, unchecked).field == "size");
  CHECK(refused("size", std::int64_t{1} << 31, unchecked).field == "size");
  CHECK(refused("working_set", 8, unchecked).field == "working_set");
  CHECK(refused("cursor", 0, unchecked).field == "cursor");
  CHECK(refused("window", 0, unchecked).field == "window");
  CHECK(refused("window", -1.0, unchecked).field == "window");
  CHECK(refused("comp_cores", "1", unchecked).field == "comp_cores");
  CHECK(refused("comm_cores", json{0.5}, unchecked).field == "comm_cores");
  CHECK(refused("steady", json{{"window", 1}}, unchecked).field == "steady.window");
  CHECK(refused("fault", "fire", unchecked).field == "fault");
}

TEST_CASE("kernel none cannot compute, but can leave the communication alone") {
  CHECK(refused("kernel", "none", unchecked).field == "kernel");
  json alone = good();
  alone["kernel"] = "none";
  alone["sequence"] = {"B", "S"};
  CHECK_NOTHROW(read_request(alone));
}

TEST_CASE("only round trips are due at fixed times, and not more than can be kept") {
  CHECK(refused("period", 1e-4, unchecked).field == "period");
  json request = good();
  request["metric"] = "latency";
  request["period"] = 1e-4;
  CHECK(read_request(request).period == 1e-4);
  request["period"] = 1e-7;
  CHECK_THROWS_AS(read_request(request), RequestError);
}

TEST_CASE("only round trips have a latency") {
  json request = good();
  request["pattern"] = "receive";
  request["metric"] = "latency";
  CHECK_THROWS_AS(read_request(request), RequestError);
}

TEST_CASE("a core that does not exist is refused with the list of cores") {
  const RequestError error = refused("comp_cores", json{9}, on_this_site);
  CHECK(error.field == "comp_cores");
  CHECK(error.value == "9");
  CHECK(error.hint == "cores here: 0,1,2,3");
}

TEST_CASE("a core used twice is refused, also through another of its processing units") {
  CHECK(refused("comp_cores", json{1, 1}, on_this_site).value == "1");
  CHECK(refused("comp_cores", json{1, 5}, on_this_site).value == "5");
}

TEST_CASE("a core outside the cpuset is refused with the cores that are allowed") {
  const RequestError error = refused("comp_cores", json{3}, on_this_site);
  CHECK(error.value == "3");
  CHECK(error.hint == "cores allowed: 0,1,2");
}

TEST_CASE("the communication core is refused among the computing cores") {
  const RequestError error = refused("comp_cores", json{1, 0}, on_this_site);
  CHECK(error.field == "comm_cores");
  CHECK(error.value == "0");
}

TEST_CASE("empty lists of cores are refused where threads are needed") {
  CHECK(refused("comp_cores", json::array(), on_this_site).field == "comp_cores");
  CHECK(refused("comm_cores", json::array(), on_this_site).field == "comm_cores");
}

TEST_CASE("nodes that do not exist are refused with the list of nodes") {
  CHECK(refused("comp_node", 4, on_this_site).field == "comp_node");
  CHECK(refused("comm_node", 4, on_this_site).hint == "nodes here: 0");
}

TEST_CASE("more memory than the node has is refused, for arrays and for messages") {
  CHECK(refused("working_set", std::int64_t{1} << 40, on_this_site).field == "working_set");
  CHECK(refused("working_set", std::numeric_limits<std::int64_t>::max(), on_this_site).field == "working_set");
  CHECK(refused("size", std::int64_t{1} << 30, on_this_site).field == "size");
}

TEST_CASE("the working set counts once for each computing core") {
  json request = good();
  request["working_set"] = std::int64_t{600} << 20;
  CHECK_NOTHROW(on_this_site(read_request(request)));
  request["comp_cores"] = {1, 2};
  CHECK_THROWS_AS(on_this_site(read_request(request)), RequestError);
}

TEST_CASE("a communication needs two ranks, a computation does not") {
  json request = good();
  CHECK_THROWS_AS(check_job(read_request(request), {"a"}), RequestError);
  request["sequence"] = {"A", "S"};
  CHECK_NOTHROW(check_job(read_request(request), {"a"}));
}

TEST_CASE("a request for two hosts is refused on one") {
  json request = good();
  request["hosts"] = 2;
  CHECK_THROWS_AS(check_job(read_request(request), {"a", "a"}), RequestError);
  CHECK_NOTHROW(check_job(read_request(request), {"a", "b"}));
}

TEST_CASE("no thread of another rank may share a computing core, on the same host only") {
  json request = good();
  request["computing_ranks"] = "all";
  CHECK_THROWS_AS(check_job(read_request(request), {"a", "a"}), RequestError);
  CHECK_NOTHROW(check_job(read_request(request), {"a", "b"}));
  request["computing_ranks"] = "first";
  request["peer_cores"] = {1};
  CHECK_THROWS_AS(check_job(read_request(request), {"a", "a"}), RequestError);
}

TEST_CASE("two communicating ranks may share a core, and it is known") {
  json request = good();
  CHECK_NOTHROW(check_job(read_request(request), {"a", "a"}));
  CHECK(shares_communication_core(read_request(request), {"a", "a"}));
  CHECK_FALSE(shares_communication_core(read_request(request), {"a", "b"}));
  request["peer_cores"] = {2};
  CHECK_FALSE(shares_communication_core(read_request(request), {"a", "a"}));
}

TEST_CASE("a core shared with a computing thread is possible when it is wanted, and known") {
  json request = good();
  request["comm_cores"] = {1};
  request["scheduling"] = true;
  const Request read = read_request(request);
  CHECK_NOTHROW(on_this_site(read));
  CHECK_NOTHROW(check_job(read, {"a", "a"}));
  CHECK(shares_computing_core(read, {"a", "a"}));
  CHECK_FALSE(shares_computing_core(read_request(good()), {"a", "a"}));
  CHECK(refused("scheduling", 1, unchecked).field == "scheduling");
}

TEST_CASE("placements override cores and nodes of their rank only") {
  json request = good();
  request["pattern"] = "ring";
  request["computing_ranks"] = "all";
  request["placements"] = {{{"rank", 1}, {"comp_cores", {2}}, {"comm_cores", {3}}, {"comp_node", 0}, {"comm_node", 1}}};
  const Request read = read_request(request);
  CHECK(placement_of(read, 1, true).comp_cores == std::vector<int>{2});
  CHECK(placement_of(read, 1, true).comm_node == 1);
  CHECK(placement_of(read, 0, true).comp_cores == std::vector<int>{1});
  CHECK_NOTHROW(check_job(read, {"a", "a"}));
  CHECK_THROWS_AS(check_job(read, {"a"}), RequestError);
}

TEST_CASE("all ranks of a ring have as many communication threads") {
  json request = good();
  request["pattern"] = "ring";
  request["comm_cores"] = {0, 2};
  CHECK_THROWS_AS(check_job(read_request(request), {"a", "a"}), RequestError);
  CHECK_NOTHROW(check_job(read_request(request), {"a", "b"}));
}
