#include "protocol/extraneous.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "protocol/record.hpp"
#include "protocol/request.hpp"

using namespace elbowroom;
using nlohmann::json;

namespace {

json window_request() {
  return {{"op", "measure"},
          {"sequence", {"B", "AB"}},
          {"kernel", "none"},
          {"comp_cores", {2}},
          {"size", 400},
          {"comm_cores", {0}},
          {"peer_cores", {1}},
          {"metric", "latency"},
          {"extraneous",
           {{"who", "both"},
            {"access", "read"},
            {"first", 800},
            {"step", 400},
            {"count", 3},
            {"data", "different"},
            {"barrier", false},
            {"exchanges", 5}}}};
}

Site three_cores(std::int64_t memory = 1 << 30) {
  return {{{0, {0, 4}, true}, {1, {1, 5}, true}, {2, {2, 6}, true}}, {{0, memory}}};
}

void readable(const Request&) {}

// The error that changes to the window or to the request give.
RequestError error_of(const json& window, const json& outside,
                      const std::function<void(const Request&)>& check = readable) {
  json changed = window_request();
  changed.update(outside);
  changed["extraneous"].update(window);
  try {
    check(read_request(changed));
  } catch (const RequestError& error) {
    CHECK_FALSE(error.hint.empty());
    CHECK_FALSE(std::string(error.what()).empty());
    return error;
  }
  FAIL("not refused: " << window.dump() << outside.dump());
  return RequestError("", "", "", "");
}

Extraneous sizes(std::int64_t count, std::int64_t exchanges) {
  Extraneous extraneous;
  extraneous.count = count;
  extraneous.exchanges = exchanges;
  return extraneous;
}

}  // namespace

TEST_CASE("extraneous accesses are read field by field") {
  const Extraneous extraneous = *read_request(window_request()).extraneous;
  CHECK(extraneous.who == Who::both);
  CHECK_FALSE(extraneous.writes);
  CHECK(extraneous.first == 800);
  CHECK(extraneous.largest() == 1600);
  CHECK(extraneous.messages() == 15);
  CHECK(extraneous.different);
  CHECK_FALSE(extraneous.barrier);
  CHECK_FALSE(read_request({{"sequence", {"S"}}}).extraneous);
}

TEST_CASE("the ranks that touch memory are those named") {
  Extraneous extraneous;
  for (const auto& [who, sender, receiver] : {std::tuple{Who::none, false, false}, std::tuple{Who::sender, true, false},
                                              std::tuple{Who::receiver, false, true}, std::tuple{Who::both, true, true},
                                              std::tuple{Who::bystanders, false, false}}) {
    extraneous.who = who;
    CHECK(extraneous.touches(0) == sender);
    CHECK(extraneous.touches(1) == receiver);
  }
}

TEST_CASE("every size has a block without accesses and then one with them, and every message a slot of its own") {
  const std::vector<Block> blocks = schedule(sizes(3, 5));
  REQUIRE(blocks.size() == 6);
  std::vector<int> counts(30, 0);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    CHECK(blocks[i].size_index == static_cast<std::int64_t>(i / 2));
    CHECK(blocks[i].accesses == (i % 2 == 1));
    CHECK(blocks[i].first_slot == (i % 2) * 15 + (i / 2) * 5);
    for (std::size_t message = 0; message < blocks[i].messages; ++message) {
      ++counts[blocks[i].first_slot + message];
    }
  }
  CHECK(counts == std::vector<int>(30, 1));
}

TEST_CASE("a message sent again has the size, the kind and the slot that it had") {
  for (const Block& block : schedule(sizes(3, 5))) {
    const std::size_t slot = block.first_slot + 4;
    const std::vector<Block> again = schedule_again(sizes(3, 5), {slot});
    REQUIRE(again.size() == 1);
    CHECK(again[0].size_index == block.size_index);
    CHECK(again[0].accesses == block.accesses);
    CHECK(again[0].first_slot == slot);
    CHECK(again[0].messages == 1);
  }
  CHECK(schedule_again(sizes(3, 5), {}).empty());
}

TEST_CASE("a one-way time begins with the later call and ends with the receive") {
  const std::vector<Stamp> sender = {{1000, 1010}, {1000, 1010}};
  const std::vector<Stamp> receiver = {{900, 1400}, {1200, 1400}};
  CHECK(message_times(sender, receiver, 0.5, Timing::one_way) == std::vector<double>{0.2, 0.1});
  CHECK(late_slots(sender, receiver) == std::vector<std::size_t>{1});
}

TEST_CASE("a call is timed by the clock of its own rank, or by the CPU time of its thread") {
  const std::vector<Stamp> sender = {{1000, 1010, 4000}};
  const std::vector<Stamp> receiver = {{1200, 1600, 7000}};
  CHECK(message_times(sender, receiver, 0.5, Timing::receive) == std::vector<double>{0.2});
  CHECK(message_times(sender, receiver, 0.5, Timing::send) == std::vector<double>{0.005});
  CHECK(message_times(sender, receiver, 0.5, Timing::receive_cpu) == std::vector<double>{7});
  CHECK(message_times(sender, receiver, 0.5, Timing::send_cpu) == std::vector<double>{4});
}

TEST_CASE("the record holds all times in their order and their median") {
  const json odd = one_way_record({0.30004, 0.1, 0.29996}, 400);
  CHECK(odd["batches"] == json({0.3, 0.1, 0.3}));
  CHECK(odd["value"] == 0.3);
  CHECK(odd["unit"] == "us");
  CHECK(odd["messages"] == 3);
  CHECK(odd["bytes"] == 1200);
  CHECK(one_way_record({4, 1, 2, 3}, 1)["value"] == 2.5);
}

TEST_CASE("two clocks are one unless a message arrives before it is sent") {
  CHECK(ClockCheck{150, 250}.agrees());
  CHECK(ClockCheck{150, 250}.offset_ns() == -50);
  CHECK(ClockCheck{150, 250}.bound_ns() == 200);
  CHECK_FALSE(ClockCheck{-1, 400}.agrees());
  CHECK_FALSE(ClockCheck{1400, -1000}.agrees());
}

TEST_CASE("unknown words and impossible windows are refused with field and value") {
  const auto same = [](const json& changed, const char* field, const char* value) {
    const RequestError error = error_of(changed, json::object());
    CHECK(error.field == field);
    CHECK(error.value == value);
  };
  same({{"who", "nobody"}}, "extraneous.who", "nobody");
  same({{"access", "touch"}}, "extraneous.access", "touch");
  same({{"data", "other"}}, "extraneous.data", "other");
  same({{"barrier", 1}}, "extraneous.barrier", "1");
  same({{"first", -8}}, "extraneous.first", "-8");
  same({{"step", 0}}, "extraneous.step", "0");
  same({{"count", 0}}, "extraneous.count", "0");
  same({{"exchanges", 0}}, "extraneous.exchanges", "0");
  same({{"count", 1 << 30}}, "extraneous.count", "1073741824");
  same({{"step", std::int64_t{1} << 62}}, "accesses", "4611686018427387904");
}

TEST_CASE("what extraneous accesses cannot be measured with is refused") {
  const auto field = [](const json& outside) { return error_of(json::object(), outside).field; };
  CHECK(field({{"sequence", {"B"}}}) == "sequence");
  CHECK(field({{"sequence", {"AB", "B"}}}) == "sequence");
  CHECK(field({{"kernel", "prime"}}) == "kernel");
  CHECK(field({{"metric", "bandwidth"}}) == "metric");
  CHECK(field({{"metric", "bandwidth"}, {"pattern", "ring"}}) == "pattern");
  CHECK(field({{"reuse", "rotate"}}) == "reuse");
}

TEST_CASE("the two ranks are two, and on one host") {
  const Request request = read_request(window_request());
  CHECK_NOTHROW(check_job(request, {"a", "a"}));
  const auto on = [&](const std::vector<std::string>& hosts) {
    return error_of(json::object(), json::object(), [&](const Request& one) { check_job(one, hosts); });
  };
  CHECK(on({"a"}).field == "ranks");
  CHECK(on({"a", "a", "a"}).value == "3");
  const RequestError apart = on({"a", "b"});
  CHECK(apart.field == "hosts");
  CHECK(std::string(apart.what()).find("clocks of a and b") != std::string::npos);
}

TEST_CASE("sender and receiver on one core are refused, whichever of its processing units is named") {
  const auto check = [](const Request& request) { check_extraneous_site(request, request.first, three_cores()); };
  CHECK_NOTHROW(check(read_request(window_request())));
  CHECK(error_of(json::object(), {{"peer_cores", {0}}}, check).field == "peer_cores");
  CHECK(error_of(json::object(), {{"peer_cores", {4}}}, check).value == "4");
}

TEST_CASE("arrays larger than the memory of their node are refused, those of both ranks together") {
  const auto with = [](std::int64_t memory) {
    return [memory](const Request& request) { check_extraneous_site(request, request.first, three_cores(memory)); };
  };
  const json million = {{"first", 1'000'000}, {"count", 1}};
  CHECK(error_of(million, json::object(), with(1'999'999)).field == "accesses");
  CHECK(error_of(million, json::object(), with(1'999'999)).value == "1000000");
  json roomy = window_request();
  roomy["extraneous"].update(million);
  CHECK_NOTHROW(with(2'001'000)(read_request(roomy)));
  roomy["extraneous"]["who"] = "sender";
  CHECK_NOTHROW(with(1'001'000)(read_request(roomy)));
  json beside = million;
  beside["who"] = "bystanders";
  CHECK(error_of(beside, {{"comp_cores", {2, 3}}}, with(1'999'999)).field == "accesses");
}

TEST_CASE("bystanders are computing threads of the first rank: their cores are their own") {
  json changed = window_request();
  changed["extraneous"]["who"] = "bystanders";
  const Request request = read_request(changed);
  CHECK(has_bystanders(request, 0));
  CHECK_FALSE(has_bystanders(request, 1));
  CHECK_FALSE(has_bystanders(read_request(window_request()), 0));
  changed["comp_cores"] = {1};
  CHECK_THROWS_AS(check_job(read_request(changed), {"a", "a"}), RequestError);
  changed["scheduling"] = true;
  CHECK_NOTHROW(check_job(read_request(changed), {"a", "a"}));
}
