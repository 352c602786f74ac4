// Loads: what holds for any model, refusals, flags, memory. That answers are those of Python is tested there.
#include <doctest/doctest.h>

#include <cerrno>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "test_allocations.hpp"
#include "test_document.hpp"

using namespace elbowroom::predict;
using namespace elbowroom::predict::test;

namespace {

constexpr std::size_t kSize = sizeof(elbow_predict_messages);

// A load with memory of its own for what comes out.
struct LoadCase {
  std::vector<elbow_predict_group> groups;
  std::vector<elbow_predict_messages> messages;  // none or one
  std::vector<elbow_predict_copy> copies;
  std::vector<elbow_predict_interval> of_groups = {};
  std::vector<elbow_predict_interval> of_copies = {};
  elbow_predict_load_result prediction = elbowroom::c_interface::sized<elbow_predict_load_result>();

  int ask(const Model& model) {
    of_groups.assign(groups.size(), {});
    of_copies.assign(copies.size(), {});
    prediction.groups = of_groups.data();
    prediction.copies = of_copies.data();
    const elbow_predict_load load = {sizeof(elbow_predict_load),
                                     groups.data(),
                                     groups.size(),
                                     messages.empty() ? nullptr : messages.data(),
                                     copies.data(),
                                     copies.size()};
    return elbow_predict_for_load(model.get(), &load, &prediction);
  }
};

void check_refused(const Model& model, LoadCase question, int code, const std::string& words) {
  errno = 0;
  question.prediction.flags = 77;
  CHECK(question.ask(model) == -1);
  CHECK(errno == code);
  CHECK(question.prediction.flags == 77);
  const std::string error = elbow_predict_error();
  CAPTURE(error);
  CHECK(error.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("a load that is a situation has its bandwidths") {
  for (const char* name : {"flow", "threshold"}) {
    const Model model = model_of(document(), name);
    auto situation = elbowroom::c_interface::sized<elbow_predict_result>();
    REQUIRE(elbow_predict(model.get(), 2, 0, 0, 0, &situation) == 0);
    LoadCase load{{{0, 0, 2, 0}}, {{kSize, 0, ELBOW_PREDICT_RECEIVE, 0, 1}}, {}};
    REQUIRE(load.ask(model) == 0);
    CHECK(load.prediction.comp_alone.value == doctest::Approx(situation.comp_alone.value).epsilon(1e-12));
    CHECK(load.prediction.comm_together.value == doctest::Approx(situation.comm_together.value).epsilon(1e-12));
    CHECK(load.prediction.comm_together.low == doctest::Approx(situation.comm_together.low).epsilon(1e-9));
    CHECK(load.of_groups[0].high == doctest::Approx(situation.comp_together.high).epsilon(1e-9));
    CHECK(load.prediction.flags == situation.flags);
  }
}

TEST_CASE("an empty load has no bandwidth, and one side alone is not slowed down") {
  for (const char* name : {"flow", "threshold"}) {
    const Model model = model_of(document(), name);
    LoadCase nothing{{}, {}, {}};
    REQUIRE(nothing.ask(model) == 0);
    CHECK(nothing.prediction.comp_alone.value == 0);
    CHECK(nothing.prediction.comm_together.value == 0);
    LoadCase cores_only{{{0, 0, 3, 0}}, {}, {}};
    REQUIRE(cores_only.ask(model) == 0);
    CHECK(cores_only.prediction.comm_alone.value == 0);
    CHECK(cores_only.prediction.comp_together.value == cores_only.prediction.comp_alone.value);
    LoadCase messages_only{{}, {{kSize, 1, ELBOW_PREDICT_RECEIVE, 0, 1}}, {}};
    REQUIRE(messages_only.ask(model) == 0);
    CHECK(messages_only.prediction.comm_together.value == doctest::Approx(11000));
    CHECK(messages_only.prediction.comp_together.value == 0);
  }
}

TEST_CASE("every group and copy has its part, and computation is the sum of its groups") {
  const Model model = model_of(document());
  LoadCase load{
      {{0, 0, 2, 0.5}, {0, 1, 1, 0}, {1, 1, 3, 0}}, {{kSize, 0, ELBOW_PREDICT_BOTH, 4096, 2}}, {{1, 9000}, {0, 5000}}};
  REQUIRE(load.ask(model) == 0);
  double sum = 0;
  for (const elbow_predict_interval& group : load.of_groups) {
    CHECK(group.low <= group.value);
    CHECK(group.value <= group.high);
    CHECK(group.value > 0);
    sum += group.value;
  }
  CHECK(sum == doctest::Approx(load.prediction.comp_together.value).epsilon(1e-12));
  CHECK(load.of_copies[0].value <= 9000 * (1 + 1e-12));
  CHECK(load.of_copies[1].value <= 5000 * (1 + 1e-12));
  CHECK(load.prediction.comp_together.value <= load.prediction.comp_alone.value * (1 + 1e-12));
  CHECK(load.prediction.comm_together.value <= load.prediction.comm_alone.value * (1 + 1e-12));
}

TEST_CASE("groups and copies that nobody wants to know are not written") {
  const Model model = model_of(document());
  const elbow_predict_group group = {0, 0, 2, 0};
  const elbow_predict_copy copy = {0, 9000};
  const elbow_predict_load load = {sizeof(elbow_predict_load), &group, 1, nullptr, &copy, 1};
  auto prediction = elbowroom::c_interface::sized<elbow_predict_load_result>();
  CHECK(elbow_predict_for_load(model.get(), &load, &prediction) == 0);
  CHECK(prediction.comp_together.value > 0);
}

TEST_CASE("more groups and copies than fit the stack are answered as few are") {
  json file = document();
  file["machine"]["cores_first_socket"] = 200;
  const Model model = model_of(file);
  LoadCase few{{{0, 0, 150, 0}}, {{kSize, 0, ELBOW_PREDICT_RECEIVE, 0, 1}}, {{0, 6000}}};
  LoadCase many{{}, {{kSize, 0, ELBOW_PREDICT_RECEIVE, 0, 1}}, {}};
  many.groups.assign(150, {0, 0, 1, 0});
  many.copies.assign(60, {0, 100});
  REQUIRE(few.ask(model) == 0);
  REQUIRE(many.ask(model) == 0);
  CHECK(many.prediction.comp_together.value == doctest::Approx(few.prediction.comp_together.value).epsilon(1e-6));
  CHECK(many.prediction.comm_together.value == doctest::Approx(few.prediction.comm_together.value).epsilon(1e-6));
}

TEST_CASE("a model for messages of another size answers loads for that size") {
  const Model model = model_of(document());
  const Model small(elbow_predict_model_at_size(model.get(), 4096));
  LoadCase explicit_size{{{0, 0, 2, 0}}, {{kSize, 0, ELBOW_PREDICT_RECEIVE, 4096, 1}}, {}};
  LoadCase meant{{{0, 0, 2, 0}}, {{kSize, 0, ELBOW_PREDICT_RECEIVE, 0, 1}}, {}};
  REQUIRE(explicit_size.ask(model) == 0);
  REQUIRE(meant.ask(small) == 0);
  CHECK(explicit_size.prediction.comm_together.value == meant.prediction.comm_together.value);
  LoadCase large{{{0, 0, 2, 0}}, {{kSize, 0, ELBOW_PREDICT_RECEIVE, 64000000, 1}}, {}};
  REQUIRE(large.ask(small) == 0);
  REQUIRE(meant.ask(model) == 0);
  CHECK(large.prediction.comm_together.value == meant.prediction.comm_together.value);
  auto situation = elbowroom::c_interface::sized<elbow_predict_result>();
  REQUIRE(elbow_predict(small.get(), 2, 0, 0, 0, &situation) == 0);
  CHECK(situation.comm_together.value == doctest::Approx(explicit_size.prediction.comm_together.value).epsilon(1e-12));
}

TEST_CASE("what no run told of is flagged") {
  json file = document();
  const LoadCase load{{{0, 0, 1, 0}, {0, 1, 1, 0}}, {{kSize, 0, ELBOW_PREDICT_SEND, 0, 2}}, {{0, 5000}}};
  LoadCase known = load;
  REQUIRE(known.ask(model_of(file)) == 0);
  CHECK(known.prediction.flags == 0);
  file["models"]["flow"]["load"]["measured"] = {"sizes", "a question of another release"};
  LoadCase unknown = load;
  REQUIRE(unknown.ask(model_of(file)) == 0);
  CHECK(unknown.prediction.flags == (ELBOW_PREDICT_SEND_UNKNOWN | ELBOW_PREDICT_THREADS_UNKNOWN |
                                     ELBOW_PREDICT_COPIES_UNKNOWN | ELBOW_PREDICT_NODES_UNKNOWN));
  unknown.messages[0].direction = ELBOW_PREDICT_BOTH;
  REQUIRE(unknown.ask(model_of(file)) == 0);
  CHECK((unknown.prediction.flags & ELBOW_PREDICT_BOTH_UNKNOWN) != 0);
}

TEST_CASE("more than was measured is extrapolated, in loads too") {
  const Model model = model_of(document());
  const auto flags = [&](LoadCase load) {
    REQUIRE(load.ask(model) == 0);
    return load.prediction.flags;
  };
  CHECK(flags({{{0, 0, 3, 2.0}}, {{kSize, 0, ELBOW_PREDICT_RECEIVE, 64, 1}}, {}}) == 0);
  CHECK(flags({{{0, 0, 4, 0}}, {}, {}}) == ELBOW_PREDICT_EXTRAPOLATED);
  CHECK(flags({{{1, 0, 3, 0}}, {}, {}}) == ELBOW_PREDICT_EXTRAPOLATED);
  CHECK(flags({{{0, 0, 1, 2.5}}, {}, {}}) == ELBOW_PREDICT_EXTRAPOLATED);
  CHECK(flags({{}, {{kSize, 0, ELBOW_PREDICT_RECEIVE, 63, 1}}, {}}) == ELBOW_PREDICT_EXTRAPOLATED);
}

TEST_CASE("what the machine, or no machine, has is refused") {
  const Model model = model_of(document());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const elbow_predict_messages fine = {sizeof(elbow_predict_messages), 0, ELBOW_PREDICT_RECEIVE, 0, 1};
  check_refused(model, {{{0, 0, 1, 0}, {2, 0, 1, 0}}, {}, {}}, EINVAL, "groups[1].socket 2: small has 2 sockets");
  check_refused(model, {{{-1, 0, 1, 0}}, {}, {}}, EINVAL, "groups[0].socket -1");
  check_refused(model, {{{0, 2, 1, 0}}, {}, {}}, EINVAL, "groups[0].node 2: small has 2 NUMA nodes; ask for 0 to 1");
  check_refused(model, {{{0, 0, 0, 0}}, {}, {}}, EINVAL, "groups[0].count 0: is not a number of computing cores");
  check_refused(model, {{{0, 0, 3, 0}, {0, 1, 2, 0}}, {}, {}}, EINVAL,
                "groups[1].count 2: small has 4 cores on socket 0");
  check_refused(model, {{{0, 0, 1, nan}}, {}, {}}, EINVAL, "groups[0].intensity nan: is not an arithmetic intensity");
  check_refused(model, {{{0, 0, 1, -1}}, {}, {}}, EINVAL, "groups[0].intensity -1");
  check_refused(model, {{}, {{kSize, 5, ELBOW_PREDICT_RECEIVE, 0, 1}}, {}}, EINVAL, "messages.node 5");
  check_refused(model, {{}, {{kSize, 0, 3, 0, 1}}, {}}, EINVAL, "messages.direction 3: is not a direction");
  check_refused(model, {{}, {{kSize, 0, ELBOW_PREDICT_RECEIVE, 0, 0}}, {}}, EINVAL, "messages.threads 0");
  check_refused(model, {{}, {fine}, {{9, 1000}}}, EINVAL, "copies[0].node 9");
  check_refused(model, {{}, {fine}, {{0, 1000}, {0, 0}}}, EINVAL, "copies[1].demand 0: is not a bandwidth");
  check_refused(model, {{}, {fine}, {{0, INFINITY}}}, EINVAL, "copies[0].demand inf");
}

TEST_CASE("what the model has no runs for is refused, with the plan that provides it") {
  json file = document();
  file["models"]["flow"]["load"] = nullptr;
  file["message_size"] = nullptr;
  const Model model = model_of(file);
  check_refused(model, {{{0, 0, 1, 0.5}}, {}, {}}, ENOTSUP, "fit it with the plan `intensity` too");
  check_refused(model, {{}, {{kSize, 0, ELBOW_PREDICT_RECEIVE, 4096, 1}}, {}}, ENOTSUP,
                "fit it with the plan `sizes` too");
  const Model threshold = model_of(file, "threshold");
  const std::string plain = "the threshold model answers one group of cores";
  check_refused(threshold, {{{0, 0, 1, 0}, {0, 1, 1, 0}}, {}, {}}, ENOTSUP, plain);
  check_refused(threshold, {{{0, 0, 1, 0.5}}, {}, {}}, ENOTSUP, plain);
  check_refused(threshold, {{}, {{kSize, 0, ELBOW_PREDICT_SEND, 0, 1}}, {}}, ENOTSUP, plain);
  check_refused(threshold, {{}, {{kSize, 0, ELBOW_PREDICT_RECEIVE, 0, 2}}, {}}, ENOTSUP, plain);
  check_refused(threshold, {{}, {}, {{0, 1000}}}, ENOTSUP, plain);
  check_refused(threshold, {{{1, 0, 1, 0}}, {}, {}}, ENOTSUP, "cores of the first socket only");
  check_refused(threshold, {{}, {{kSize, 0, ELBOW_PREDICT_RECEIVE, 4096, 1}}, {}}, ENOTSUP,
                "messages of one size only");
  file["models"]["threshold"]["remote"] = nullptr;
  check_refused(model_of(file, "threshold"), {{{0, 1, 1, 0}}, {}, {}}, EDOM, "calibrated without such accesses");
}

TEST_CASE("null is refused in loads too") {
  const Model model = model_of(document());
  auto load = elbowroom::c_interface::sized<elbow_predict_load>();
  auto prediction = elbowroom::c_interface::sized<elbow_predict_load_result>();
  CHECK(elbow_predict_for_load(nullptr, &load, &prediction) == -1);
  CHECK(elbow_predict_for_load(model.get(), nullptr, &prediction) == -1);
  CHECK(elbow_predict_for_load(model.get(), &load, nullptr) == -1);
  load.group_count = 1;
  CHECK(elbow_predict_for_load(model.get(), &load, &prediction) == -1);
  CHECK(std::string(elbow_predict_error()) == "load.groups is NULL");
  load = {};
  load.copy_count = 1;
  CHECK(elbow_predict_for_load(model.get(), &load, &prediction) == -1);
  CHECK(errno == EINVAL);
}

TEST_CASE("a damaged part for loads is refused with what is wrong") {
  const auto refused = [](const char* field, const json& value, const std::string& words) {
    json file = document();
    file["models"]["flow"]["load"][field] = value;
    errno = 0;
    CHECK(parsed(file) == nullptr);
    CHECK(errno == EBADMSG);
    const std::string error = elbow_predict_error();
    CAPTURE(error);
    CHECK(error.find("models.flow.load." + words) != std::string::npos);
  };
  json load = document()["models"]["flow"]["load"];
  const json values = load["values"];
  refused("draws", json::array({values}), "draws: 1 sets of parameters beside 2 of FLOW");
  refused("values", {1, 2}, "values: 2 numbers for");
  refused("values", nullptr, "values: is missing");
  refused("names", 7, "names: is not a list");
  refused("switches", {4096, 4096}, "switches[1]: is not above the one before");
  refused("switches", {-1}, "switches[0]: is not above the one before");
  refused("switches", {"4 KiB"}, "switches[0]: is not a number");
  refused("intensity", "much", "intensity: is not a number");
  refused("measured", {1}, "measured[0]: is not text");
  refused("discrepancy", {0, 0, 0, -1}, "discrepancy[3]: is negative");
  json many = json::array();
  for (int i = 0; i < 1000; ++i) {
    many.push_back(i);
  }
  refused("switches", many, "switches: are more than");
}

TEST_CASE("parameters that make no bandwidth are refused, not answered") {
  json file = document();
  json& values = file["models"]["flow"]["load"]["values"];
  for (json& value : values) {
    value = 0;
  }
  check_refused(model_of(file), {{{0, 0, 1, 0}}, {{kSize, 0, ELBOW_PREDICT_RECEIVE, 4096, 1}}, {}}, EDOM,
                "has no bandwidth for that load");
}

TEST_CASE("a situation, and a load of up to a dozen groups and copies, is answered without memory from the heap") {
  json file = document();
  file["machine"]["numa_per_socket"] = 8;
  file["machine"]["cores_first_socket"] = 40;
  elbow_predict_model* model = parsed(file);
  REQUIRE(model != nullptr);
  const elbow_predict_messages messages = {sizeof(elbow_predict_messages), 15, ELBOW_PREDICT_BOTH, 4096, 2};
  for (int group_count = 0; group_count <= 12; ++group_count) {
    // Every one on another node, and all of both kinds: as many resources as there can be.
    std::vector<elbow_predict_group> groups;
    std::vector<elbow_predict_copy> copies;
    for (int k = 0; k < 12; ++k) {
      if (k < group_count) {
        groups.push_back({k % 2, k, 1, 0.5});
      } else {
        copies.push_back({k, 1000.0 + k});
      }
    }
    const elbow_predict_load load = {
        sizeof(elbow_predict_load), groups.data(), groups.size(), &messages, copies.data(), copies.size()};
    auto prediction = elbowroom::c_interface::sized<elbow_predict_load_result>();
    auto situation = elbowroom::c_interface::sized<elbow_predict_result>();
    const long before = allocations;
    const int done = elbow_predict_for_load(model, &load, &prediction);
    const int done_too = elbow_predict(model, 2, 1, 0, 1, &situation);
    const long after = allocations;
    CHECK(done == 0);
    CHECK(done_too == 0);
    CHECK(after == before);
  }
  CHECK(allocations > 0);
  elbow_predict_model_free(model);
}
