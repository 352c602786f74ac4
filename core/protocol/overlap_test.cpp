#include "protocol/overlap.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "protocol/record.hpp"
#include "protocol/request.hpp"

using namespace elbowroom;
using nlohmann::json;

namespace {

json call_request() {
  return {{"op", "measure"},   {"sequence", {"B", "A", "AB"}},
          {"kernel", "prime"}, {"comp_cores", {0}},
          {"comm_cores", {0}}, {"computing_ranks", "all"},
          {"size", 1024},      {"overlap", {{"operation", "allreduce"}, {"form", "nonblocking"}}}};
}

Site host_of_two(std::int64_t memory = 1 << 30) { return {{{0, {0}, true}, {1, {1}, true}}, {{0, memory}}}; }

void any_call(const Request&) {}

// The error that changes to the call or to the request give.
RequestError refusal(const json& call, const json& outside,
                     const std::function<void(const Request&)>& check = any_call) {
  json changed = call_request();
  const json none = json::object();  // what {} means here is null to json
  changed.update(outside.is_null() ? none : outside);
  changed["overlap"].update(call.is_null() ? none : call);
  try {
    check(read_request(changed));
  } catch (const RequestError& error) {
    CHECK_FALSE(error.hint.empty());
    return error;
  }
  FAIL("not refused: " << call.dump() << outside.dump());
  return RequestError("", "", "", "");
}

void check_site(const Request& request) {
  check_overlap_site(request, placement_of(request, 0, true), host_of_two(), 0, 2, 2);
}

Visit between(std::int64_t enter, std::int64_t leave) {
  Visit visit;
  visit.enter = enter;
  visit.leave = leave;
  return visit;
}

}  // namespace

TEST_CASE("a call beside a computation is read with its policy") {
  json request = call_request();
  request["overlap"] = {{"operation", "exchange"},  {"form", "persistent"},
                        {"progress", "thread"},     {"neighbours", 26},
                        {"progress_cores", {3, 4}}, {"late", {{"rank", 1}, {"seconds", 0.01}}}};
  const Overlap overlap = *read_request(request).overlap;
  CHECK(overlap.operation == Operation::exchange);
  CHECK(overlap.form == Form::persistent);
  CHECK(overlap.progress == Progress::thread);
  CHECK(overlap.neighbours == 26);
  CHECK(overlap.progress_cores == std::vector<int>{3, 4});
  CHECK(overlap.late_rank == 1);
  CHECK(overlap.late_seconds == 0.01);
}

TEST_CASE("calls that cannot be made are refused by their field") {
  CHECK(refusal({{"operation", "gossip"}}, {}).field == "overlap.operation");
  CHECK(refusal({{"form", "lazy"}}, {}).field == "overlap.form");
  CHECK(refusal({{"progress", "magic"}}, {}).field == "overlap.progress");
  CHECK(refusal({{"form", "blocking"}, {"progress", "test"}}, {}).field == "overlap.progress");
  CHECK(refusal({{"operation", "exchange"}, {"neighbours", 27}}, {}).field == "overlap.neighbours");
  CHECK(refusal({{"period", 0}}, {}).field == "overlap.period");
  CHECK(refusal({{"iterations", -1}}, {}).field == "overlap.iterations");
  CHECK(refusal({}, {{"size", 1023}}).field == "size");
  CHECK(refusal({{"operation", "bcast"}}, {{"size", 0}}).field == "size");
  CHECK(refusal({}, {{"sequence", {"B", "AB"}}}).field == "sequence");
  CHECK(refusal({}, {{"kernel", "none"}}).field == "kernel");
}

TEST_CASE("a barrier has no size") {
  json request = call_request();
  request["size"] = 0;
  request["overlap"]["operation"] = "barrier";
  CHECK_NOTHROW(read_request(request));
}

TEST_CASE("a rank that is late must exist") {
  const auto check = [](const Request& request) { check_overlap_job(request, {"a", "a"}); };
  CHECK(refusal({{"late", {{"rank", 2}, {"seconds", 0.1}}}}, {}, check).field == "overlap.late.rank");
}

TEST_CASE("a progress thread needs a core that nothing computes on") {
  const json thread = {{"progress", "thread"}};
  const auto on = [&](const json& cores) {
    json call = thread;
    call["progress_cores"] = cores;
    return call;
  };
  CHECK(refusal(on({0, 0}), {}, check_site).field == "overlap.progress_cores");
  CHECK(refusal(on({7, 7}), {}, check_site).field == "overlap.progress_cores");
  CHECK(refusal(thread, {}, check_site).field == "overlap.progress_cores");
}

TEST_CASE("the thread that communicates is the first that computes") {
  CHECK(refusal({}, {{"comm_cores", {1}}}, check_site).field == "comm_cores");
}

TEST_CASE("messages of all ranks of a host must fit in memory") {
  const auto check = [](const Request& request) {
    check_overlap_site(request, placement_of(request, 0, true), host_of_two(4096), 0, 8, 8);
  };
  CHECK(refusal({{"operation", "alltoall"}}, {}, check).field == "size");
}

TEST_CASE("every operation has memory for all blocks it sends and receives") {
  const auto bytes = [](Operation operation) {
    Overlap overlap;
    overlap.operation = operation;
    overlap.neighbours = 6;
    return overlap_bytes(overlap, 100, 4).all();
  };
  CHECK(bytes(Operation::barrier) == 0);
  CHECK(bytes(Operation::allreduce) == 200);
  CHECK(bytes(Operation::allgather) == 500);
  CHECK(bytes(Operation::alltoall) == 800);
  CHECK(bytes(Operation::exchange) == 1200);
}

TEST_CASE("no neighbour is the rank itself, whatever their number") {
  for (const int ranks : {2, 3, 8}) {
    for (int j = 0; j < 26; ++j) {
      CHECK(neighbour_offset(j, ranks) % ranks != 0);
      CHECK(neighbour_offset(j, ranks) > 0);
    }
  }
  CHECK((neighbour_offset(0, 8) + neighbour_offset(1, 8)) % 8 == 0);  // one on each side
}

TEST_CASE("kinds of iterations are measured in turn, in both orders") {
  using enum Kind;
  CHECK(iteration_order(2, true) == std::vector<Kind>{message, computation, together, together, computation, message});
  CHECK(iteration_order(2, false) == std::vector<Kind>{message, message});
}

TEST_CASE("a window has room for a number of iterations within limits") {
  CHECK(iterations_in(0.01, 1e-3) == 10);
  CHECK(iterations_in(0.01, 1) == 5);
  CHECK(iterations_in(0.01, 1e-6) == 50);
  CHECK(iterations_in(0.01, 0) == 50);
}

TEST_CASE("times between two comparisons of the clocks follow a drift") {
  const ClockPair clocks{1000, 100, 2000, 300, 5};
  CHECK(clocks.common(1000) == 1100);
  CHECK(clocks.common(1500) == 1700);
  CHECK(clocks.common(2000) == 2300);
}

TEST_CASE("an iteration lasts from the last arrival to the last departure") {
  const std::vector<double> times = durations({{between(100, 900), between(400, 1000)}});
  CHECK(times.front() == doctest::Approx(600e-9));
}

TEST_CASE("nobody leaves a barrier before the last has come") {
  CHECK(barrier_holds({between(0, 500), between(400, 600)}, 0));
  CHECK_FALSE(barrier_holds({between(0, 300), between(400, 600)}, 50));
  CHECK(barrier_holds({between(0, 390), between(400, 600)}, 50));
}

TEST_CASE("a repetition has the times of every rank, and phases that cost time") {
  Visit both = between(1'000, 9'000);
  both.posted = 2'000;
  both.computed = 7'000;
  both.tests = 3;
  both.tests_ns = 500;
  const Visits visits = {
      {{{between(0, 4'000), between(1'000, 5'000)}}, {{between(0, 100), between(0, 200)}}, {{both, both}}}};
  const json record = overlap_record(visits, 2e-7);
  CHECK(record["clock_bound"] == 2e-7);
  CHECK(record["message"]["enter"][0][1].get<double>() == doctest::Approx(1e-6));
  CHECK(record["together"]["tests"][0][0] == 3);
  CHECK(record["together"]["tests_s"][0][1].get<double>() == doctest::Approx(5e-7));
  const json phases = overlap_phases(visits, 0, {});
  REQUIRE(phases.size() == 3);
  CHECK(phases[0]["comm"]["value"].get<double>() == doctest::Approx(4));
  CHECK(phases[1]["comp"]["rate"].get<double>() == doctest::Approx(0.2));
  CHECK(phases[2]["comp"]["rate"].get<double>() == doctest::Approx(5));
  CHECK(phases[2]["total"]["value"].get<double>() == doctest::Approx(8));
  CHECK(overlap_phases(visits, 1, {})[0]["status"] == "void");
  CHECK(overlap_phases(visits, 0, {"validation_failed"})[2]["status"] == "void");
}

TEST_CASE("sums of what ranks contribute are exact, and differ from seed to seed") {
  float sum = 0;
  for (int rank = 0; rank < 9; ++rank) {
    sum += contribution(12, rank, 5);
  }
  CHECK(sum == contributions(12, 9, 5));
  CHECK(contributions(12, 9, 5) != contributions(12, 9, 5 + 8));
}

TEST_CASE("the ranks' shares of a reduce-scatter are all elements, each once") {
  std::size_t next = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const auto [first, count] = share_of(10, rank, 3);
    CHECK(first == next);
    next += count;
  }
  CHECK(next == 10);
}

TEST_CASE("stamped elements are different ones, the first and the last among them") {
  CHECK(stamped_elements(0).empty());
  CHECK(stamped_elements(1) == std::vector<std::size_t>{0});
  const std::vector<std::size_t> many = stamped_elements(1000);
  CHECK(many.size() == 16);
  CHECK(many.front() == 0);
  CHECK(many.back() == 999);
  CHECK(std::adjacent_find(many.begin(), many.end()) == many.end());
}
