#include "request.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

using namespace elbowroom::gpu_bench;

namespace {

std::string refusal(const std::string& text) {
  try {
    parse_request(text);
  } catch (const WrongRequest& error) {
    return error.what();
  }
  return "";
}

std::string refusal_of_case(const std::string& text) { return refusal(R"({"core": 1, "cases": [)" + text + "]}"); }

}  // namespace

TEST_CASE("a request with defaults") {
  const Request request = parse_request(R"({"cases": [{"a": {"kind": "copy"}}]})");
  CHECK(request.repeat == 5);
  REQUIRE(request.cases.size() == 1);
  CHECK(request.cases[0].name == "case 0");
  CHECK(request.cases[0].sides[0].direction == "h2d");
}

TEST_CASE("wrong requests are refused with a sentence") {
  CHECK(refusal("{") == "the request is no JSON");
  CHECK(refusal("[]") == "the request is no object");
  CHECK(refusal("{}") == "the request has no cases");
  CHECK(refusal(R"({"cases": [], "repeat": 1})") == "the request has no cases");
  CHECK(refusal(R"({"repeat": 0})") == "repeat must be above 0");
  CHECK(refusal(R"({"repeat": "x"})") == "the request: repeat is of the wrong type");
  CHECK(refusal(R"({"seconds": 0})") == "seconds and patience must be above 0");
  CHECK(refusal(R"({"case": []})").find("the request has no key case; it takes device, repeat") == 0);
}

TEST_CASE("wrong cases are refused with a sentence") {
  CHECK(refusal_of_case(R"({"b": {"kind": "triad"}})") == "case 0 has no side a");
  CHECK(refusal_of_case(R"({"a": 1})") == "case 0, side a is no object");
  CHECK(refusal_of_case(R"({"a": {"kind": "spin"}})").find("kind spin is not one of chain, control, copy") !=
        std::string::npos);
  CHECK(refusal_of_case(R"({"a": {"kind": "triad", "sms": 1}})") ==
        "case 0, side a has no key sms; it takes kind, bytes");
  CHECK(refusal_of_case(R"({"a": {"kind": "copy", "bytes": 0}})") == "case 0, side a: bytes must be a number above 0");
  CHECK(refusal_of_case(R"({"a": {"kind": "copy", "direction": "up"}})") ==
        "case 0, side a: direction up is not one of h2d, d2h, both, d2d");
  CHECK(refusal_of_case(R"({"a": {"kind": "sm_idle", "sms": 0}})") == "case 0, side a: sms must be above 0");
  CHECK(refusal_of_case(R"({"a": {"kind": "sm_copy", "sms": 3, "pairs": true}})") ==
        "case 0, side a: pairs hold an even number of sms");
  CHECK(refusal_of_case(R"({"a": {"kind": "sm_idle", "pairs": 2}})") == "case 0, side a: pairs is of the wrong type");
  CHECK(refusal_of_case(R"({"a": {"kind": "cores"}})") == "case 0, side a: cores must name at least one core");
  CHECK(refusal_of_case(R"({"a": {"kind": "cores", "cores": [0], "kernel": "x"}})") ==
        "case 0, side a: there is no kernel x");
  CHECK(refusal_of_case(R"({"a": {"kind": "cores", "cores": [2, 2]}})") == "case 0, side a: a core is named twice");
  CHECK(refusal_of_case(R"({"a": {"kind": "cores", "cores": [0, 1]}})") ==
        "case 0: core 1 submits, and cannot compute");
  CHECK(refusal_of_case(R"({"a": {"kind": "cores", "cores": [2]}, "b": {"kind": "cores", "cores": [2]}})") ==
        "case 0: both sides compute on one core");
  CHECK(refusal_of_case(R"({"a": {"kind": "triad"}, "first": "c"})") == "case 0: first c is not one of a, b");
}

TEST_CASE("a product is planned without SMs as side b of a gemm only") {
  const auto asked = [](const std::string& a, const std::string& b) {
    return parse_request(R"({"cases": [{"a": )" + a + R"(, "b": )" + b + "}]}");
  };
  const std::string target = R"({"kind": "sm_target", "sms": 4})";
  CHECK_NOTHROW(asked(R"({"kind": "gemm"})", target));
  CHECK_THROWS_WITH_AS(asked(R"({"kind": "triad"})", target), "case 0: sm_target is side b of a gemm", WrongRequest);
  const std::string idle = R"({"kind": "sm_idle", "sms": 4, "plan_others": true})";
  CHECK_NOTHROW(asked(R"({"kind": "gemm"})", idle));
  CHECK_THROWS_WITH_AS(asked(R"({"kind": "triad"})", idle), "case 0: plan_others is of side b of a gemm", WrongRequest);
}

TEST_CASE("messages, and a third side, are refused without MPI, and one core has one thread") {
  const nlohmann::json three = nlohmann::json::parse(R"({"a": {"kind": "cores", "kernel": "prime", "cores": [1]},
    "b": {"kind": "copy"}, "c": {"kind": "messages", "bytes": 8, "core": 2, "peer_core": 3}})");
  CHECK(read_case(three, "the case", 0).sides.size() == 3);
  const std::string text = nlohmann::json{{"cases", {three}}}.dump();
  CHECK_THROWS_WITH_AS(parse_request(text), "case 0: messages need gpu-streams, which runs with MPI", WrongRequest);
  CHECK_THROWS_WITH_AS(read_case(three, "it", 1), "it: core 1 submits, and cannot compute", WrongRequest);
  nlohmann::json same = three;
  same["c"]["peer_core"] = 1;
  CHECK_THROWS_WITH_AS(read_case(same, "it", 0), "it: core 1 communicates, and cannot compute", WrongRequest);
}
