#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "filling.hpp"
#include "test_document.hpp"

using namespace elbowroom::predict;
using namespace elbowroom::predict::test;

namespace {

elbow_predict_result predicted(const Model& model, int n, int n_other, int comp_node, int comm_node) {
  auto prediction = elbowroom::c_interface::sized<elbow_predict_result>();
  REQUIRE(elbow_predict(model.get(), n, n_other, comp_node, comm_node, &prediction) == 0);
  return prediction;
}

// Reading fails with this errno, and the sentence holds these words.
void check_refused(const json& file, int code, const std::string& words, const char* model = nullptr) {
  errno = 0;
  CHECK(parsed(file, model) == nullptr);
  CHECK(errno == code);
  const std::string error = elbow_predict_error();
  CAPTURE(error);
  CHECK(error.find(words) != std::string::npos);
}

void check_interval(const elbow_predict_interval& prediction) {
  CHECK(prediction.low <= prediction.value);
  CHECK(prediction.value <= prediction.high);
}

}  // namespace

TEST_CASE("the best model answers unless another is asked for") {
  auto machine = elbowroom::c_interface::sized<elbow_predict_machine>();
  REQUIRE(elbow_predict_model_machine(model_of(document()).get(), &machine) == 0);
  const Model flow = model_of(document());
  const Model threshold = model_of(document(), "threshold");
  REQUIRE(elbow_predict_model_machine(flow.get(), &machine) == 0);
  CHECK(std::string(machine.model) == "flow");
  CHECK(std::string(machine.name) == "small");
  CHECK(machine.cores_first_socket == kCores);
  CHECK(machine.cores_other == kCores);
  CHECK(machine.nodes == 2);
  REQUIRE(elbow_predict_model_machine(threshold.get(), &machine) == 0);
  CHECK(std::string(machine.model) == "threshold");
  CHECK(machine.cores_other == 0);
}

TEST_CASE("without computing cores messages have their bandwidth alone") {
  for (const char* model : {"flow", "threshold"}) {
    const elbow_predict_result prediction = predicted(model_of(document(), model), 0, 0, 0, 0);
    CHECK(prediction.comp_alone.value == 0);
    CHECK(prediction.comp_together.value == 0);
    CHECK(prediction.comm_together.value == doctest::Approx(11000));
    CHECK(prediction.comm_alone.value == doctest::Approx(11000));
  }
}

TEST_CASE("nobody is faster together than alone, and every interval holds its value") {
  for (const char* name : {"flow", "threshold"}) {
    const Model model = model_of(document(), name);
    for (int place = 0; place < 4; ++place) {
      for (int n = 0; n <= kCores; ++n) {
        const elbow_predict_result prediction = predicted(model, n, 0, place / 2, place % 2);
        CHECK(prediction.comp_together.value <= prediction.comp_alone.value * (1 + 1e-9));
        CHECK(prediction.comm_together.value <= prediction.comm_alone.value * (1 + 1e-9));
        check_interval(prediction.comp_alone);
        check_interval(prediction.comm_alone);
        check_interval(prediction.comp_together);
        check_interval(prediction.comm_together);
      }
    }
  }
}

TEST_CASE("more cores than were measured are extrapolated, simulated machines virtual") {
  json file = document();
  CHECK(predicted(model_of(file), 3, 2, 0, 0).flags == 0);
  CHECK(predicted(model_of(file), 4, 0, 0, 0).flags == ELBOW_PREDICT_EXTRAPOLATED);
  CHECK(predicted(model_of(file), 3, 3, 0, 0).flags == ELBOW_PREDICT_EXTRAPOLATED);
  file["machine"]["virtual"] = true;
  CHECK(predicted(model_of(file), 3, 0, 0, 0).flags == ELBOW_PREDICT_VIRTUAL);
}

TEST_CASE("data on a socket where none was measured is extrapolated") {
  json file = document();
  file["calibration"]["placements"] = {{0, 0}, {0, 1}};
  CHECK(predicted(model_of(file), 3, 0, 0, 1).flags == 0);
  CHECK(predicted(model_of(file), 3, 0, 1, 0).flags == ELBOW_PREDICT_EXTRAPOLATED);
}

TEST_CASE("placements without an interval of their own take the widest, and say so") {
  json file = document();
  file["models"]["threshold"]["bands"] = {{"local", {0.1, 0.1, 0.1, 0.3}}, {"remote", {0.2, 0.1, 0.1, 0.1}}};
  const Model model = model_of(file, "threshold");
  const elbow_predict_result other = predicted(model, 1, 0, 0, 1);
  CHECK((other.flags & ELBOW_PREDICT_SAMPLES_ONLY) != 0);
  CHECK(other.comp_alone.high == doctest::Approx(1.2 * other.comp_alone.value));
  CHECK(other.comm_together.low == doctest::Approx(0.7 * other.comm_together.value));
  CHECK((predicted(model, 1, 0, 0, 0).flags & ELBOW_PREDICT_SAMPLES_ONLY) == 0);
}

TEST_CASE("messages of another size have the bandwidth that the law of their latency gives") {
  json file = document();
  file["models"]["flow"]["load"] = nullptr;
  const Model model = model_of(file);
  const Model small(elbow_predict_model_at_size(model.get(), 4096));
  REQUIRE(small != nullptr);
  const double rest = 64e6 / 11000 - 5.0;
  const elbow_predict_result prediction = predicted(small, 2, 0, 0, 0);
  CHECK(prediction.comm_alone.value == doctest::Approx(4096 / (5.0 + rest * 4096 / 64e6)));
  CHECK(prediction.comp_alone.value == predicted(model, 2, 0, 0, 0).comp_alone.value);
  CHECK(prediction.flags == 0);
  auto machine = elbowroom::c_interface::sized<elbow_predict_machine>();
  REQUIRE(elbow_predict_model_machine(small.get(), &machine) == 0);
  CHECK(machine.message_size == 4096);
  const Model smaller(elbow_predict_model_at_size(model.get(), 64));
  CHECK(predicted(smaller, 2, 0, 0, 0).flags == ELBOW_PREDICT_EXTRAPOLATED);
  CHECK(elbow_predict_model_at_size(model.get(), 0) == nullptr);
  CHECK(elbow_predict_model_at_size(nullptr, 64) == nullptr);
  CHECK(errno == EINVAL);
}

TEST_CASE("a model that knows one message size only, or whose law has no bandwidth, says so") {
  json file = document();
  file["models"]["flow"]["load"] = nullptr;
  file["message_size"] = nullptr;
  CHECK(elbow_predict_model_at_size(model_of(file).get(), 4096) == nullptr);
  CHECK(errno == ENOTSUP);
  CHECK(Model(elbow_predict_model_at_size(model_of(file).get(), 64000000)) != nullptr);
  file = document();
  file["models"]["flow"]["load"] = nullptr;
  file["message_size"]["t0"] = 1e9;
  CHECK(elbow_predict_model_at_size(model_of(file).get(), 4096) == nullptr);
  CHECK(errno == EDOM);
}

TEST_CASE("what does not fit into the table is computed when asked for, and is the same") {
  json file = document();
  const Model small = model_of(file);
  // So many cores and draws that the second socket is not tabulated.
  file["machine"]["cores_first_socket"] = 60;
  json draws = json::array();
  const json values = file["models"]["flow"]["draws"];
  for (int i = 0; i < 1500; ++i) {
    draws.push_back(values[i % 2]);
  }
  file["models"]["flow"]["draws"] = draws;
  file["models"]["flow"]["load"] = nullptr;
  const Model large = model_of(file);
  for (int n_other = 0; n_other <= kCores; ++n_other) {
    for (int place = 0; place < 4; ++place) {
      const elbow_predict_result a = predicted(small, 2, n_other, place / 2, place % 2);
      const elbow_predict_result b = predicted(large, 2, n_other, place / 2, place % 2);
      CHECK(a.comp_together.value == b.comp_together.value);
      CHECK(a.comm_together.low == doctest::Approx(b.comm_together.low).epsilon(1e-9));
    }
  }
}

TEST_CASE("runs of loads know other sizes better than the law of their latency") {
  const Model model = model_of(document());
  const Model small(elbow_predict_model_at_size(model.get(), 4096));
  REQUIRE(small != nullptr);
  CHECK(predicted(small, 2, 2, 0, 0).comm_alone.value ==
        doctest::Approx(4096 / (5.0 + (64e6 / 11000 - 5.0) * 4096 / 64e6)));
  CHECK(predicted(small, 2, 2, 0, 0).flags == 0);
  const Model smaller(elbow_predict_model_at_size(model.get(), 63));
  CHECK(predicted(smaller, 2, 0, 0, 0).flags == ELBOW_PREDICT_EXTRAPOLATED);
  CHECK(predicted(smaller, 0, 0, 0, 1).comp_alone.value == 0);
}

TEST_CASE("a side that was not calibrated has no answer") {
  json file = document();
  file["models"]["threshold"]["remote"] = nullptr;
  const Model model = model_of(file, "threshold");
  auto prediction = elbowroom::c_interface::sized<elbow_predict_result>();
  CHECK(elbow_predict(model.get(), 1, 0, 0, 0, &prediction) == 0);
  CHECK(elbow_predict(model.get(), 1, 0, 0, 1, &prediction) == -1);
  CHECK(errno == EDOM);
}

TEST_CASE("cores and nodes outside the machine are refused with its limits") {
  const Model model = model_of(document());
  const Model threshold = model_of(document(), "threshold");
  auto prediction = elbowroom::c_interface::sized<elbow_predict_result>();
  struct Case {
    const Model& model;
    int n, n_other, comp_node, comm_node;
    const char* words;
  };
  for (const Case& one : {Case{model, 5, 0, 0, 0, "n 5: small has 4 cores"}, Case{model, -1, 0, 0, 0, "n -1"},
                          Case{model, 1, 5, 0, 0, "n_other 5"}, Case{threshold, 1, 1, 0, 0, "one socket only"},
                          Case{model, 1, 0, 2, 0, "comp_node 2: small has the NUMA nodes 0 to 1"},
                          Case{model, 1, 0, 0, -1, "comm_node -1"}}) {
    prediction.flags = 77;
    CHECK(elbow_predict(one.model.get(), one.n, one.n_other, one.comp_node, one.comm_node, &prediction) == -1);
    CHECK(errno == EINVAL);
    CHECK(prediction.flags == 77);
    CHECK(std::string(elbow_predict_error()).find(one.words) != std::string::npos);
  }
}

TEST_CASE("null is refused everywhere, and freed") {
  auto prediction = elbowroom::c_interface::sized<elbow_predict_result>();
  const Model model = model_of(document());
  CHECK(elbow_predict(nullptr, 1, 0, 0, 0, &prediction) == -1);
  CHECK(elbow_predict(model.get(), 1, 0, 0, 0, nullptr) == -1);
  CHECK(elbow_predict_model_machine(nullptr, nullptr) == -1);
  CHECK(elbow_predict_model_machine(model.get(), nullptr) == -1);
  CHECK(elbow_predict_node(nullptr, 0) == -1);
  CHECK(elbow_predict_model_load(nullptr, nullptr) == nullptr);
  CHECK(elbow_predict_model_parse(nullptr, 0, nullptr) == nullptr);
  CHECK(errno == EINVAL);
  elbow_predict_model_free(nullptr);
}

TEST_CASE("structures without their size are refused and left as they are") {
  const Model model = model_of(document());
  elbow_predict_result prediction{};
  CHECK(elbow_predict(model.get(), 1, 0, 0, 0, &prediction) == -1);
  CHECK(errno == EINVAL);
  CHECK(std::string(elbow_predict_error()).find("prediction.size 0: must be the structure's size") !=
        std::string::npos);
  elbow_predict_machine machine{};
  CHECK(elbow_predict_model_machine(model.get(), &machine) == -1);
  CHECK(machine.name == nullptr);
  auto load = elbowroom::c_interface::sized<elbow_predict_load>();
  auto result = elbowroom::c_interface::sized<elbow_predict_load_result>();
  const elbow_predict_messages messages{0, 0, ELBOW_PREDICT_RECEIVE, 0, 1};
  load.messages = &messages;
  CHECK(elbow_predict_for_load(model.get(), &load, &result) == -1);
  CHECK(std::string(elbow_predict_error()).find("messages.size 0") != std::string::npos);
  load.size = 8;
  CHECK(elbow_predict_for_load(model.get(), &load, &result) == -1);
  CHECK(elbow_predict_for_load(model.get(), nullptr, &result) == -1);
  CHECK(std::string(elbow_predict_version()) == ELBOWROOM_VERSION);
}

TEST_CASE("the system's numbers of nodes become the model's") {
  json file = document();
  CHECK(elbow_predict_node(model_of(file).get(), 8) == 1);
  CHECK(elbow_predict_node(model_of(file).get(), 1) == -1);
  file["calibration"].erase("nodes");
  CHECK(elbow_predict_node(model_of(file).get(), 0) == -1);
  CHECK(errno == EINVAL);
}

TEST_CASE("a machine whose sockets are not alike is refused") {
  json file = document();
  file["machine"]["layout"] = json::array({{4, 1}, {2, 1}});
  check_refused(file, ENOTSUP, "the sockets of small are not alike");
}

TEST_CASE("a machine whose nodes of a socket are not alike is refused") {
  json file = document();
  file["node_factors"] = {{"comm", {1.0, 1.0}}, {"comp", {1.0, 1.0}}};
  check_refused(file, ENOTSUP, "the NUMA nodes of a socket of small are not alike");
}

TEST_CASE("files that are no models are refused with what is wrong") {
  json file = document();
  check_refused(json::array(), EBADMSG, "not a model of elbowroom");
  file["schema"] = "elbowroom/manifest";
  check_refused(file, EBADMSG, "not a model of elbowroom");
  file = document();
  file["version"] = ELBOW_PREDICT_FORMAT + 1;
  file["elbowroom"] = "9.9";
  check_refused(file, ENOTSUP, "written by elbowroom 9.9");
  file = document();
  file["machine"].erase("cores_first_socket");
  check_refused(file, EBADMSG, "machine.cores_first_socket: is missing");
  file = document();
  file["models"]["flow"]["draws"][1].erase(0);
  check_refused(file, EBADMSG, "models.flow.draws[1]: 23 numbers for 24 parameters");
  file = document();
  file["models"]["threshold"]["local"]["alpha"] = "much";
  check_refused(file, EBADMSG, "models.threshold.local.alpha: is not a number");
  file = document();
  file["models"] = json::object();
  check_refused(file, ENOTSUP, "only an accelerator is in the file");
  file.erase("gpu");
  check_refused(file, ENOTSUP, "there is no model in the file");
  check_refused(document(), ENOTSUP, "it has: flow, threshold", "robust");
  check_refused(document(), EINVAL, "it has: flow, threshold", "best");
  CHECK(elbow_predict_model_parse("{\"schema\": ", 11, nullptr) == nullptr);
  CHECK(std::string(elbow_predict_error()).find("not JSON (byte 12)") != std::string::npos);
}

TEST_CASE("fields that are not known are passed over, whatever the order of parameters") {
  json file = document();
  const elbow_predict_result before = predicted(model_of(file), 3, 1, 1, 1);
  file["weather"] = "fine";
  json& flow = file["models"]["flow"];
  for (const char* list : {"names", "values"}) {
    std::reverse(flow[list].begin(), flow[list].end());
  }
  for (json& draw : flow["draws"]) {
    std::reverse(draw.begin(), draw.end());
  }
  const elbow_predict_result after = predicted(model_of(file), 3, 1, 1, 1);
  CHECK(before.comm_together.value == after.comm_together.value);
  CHECK(before.comm_together.low == after.comm_together.low);
}

TEST_CASE("files are read from the disk, and what the system says of them is passed on") {
  const std::string path = "elbow-predict-test-" + std::to_string(getpid()) + ".json";
  std::FILE* file = std::fopen(path.c_str(), "w");
  REQUIRE(file != nullptr);
  std::fputs(document().dump().c_str(), file);
  std::fclose(file);
  const Model model(elbow_predict_model_load(path.c_str(), nullptr));
  CHECK(model != nullptr);
  std::remove(path.c_str());
  CHECK(elbow_predict_model_load(path.c_str(), nullptr) == nullptr);
  CHECK(errno == ENOENT);
  CHECK(std::string(elbow_predict_error()).find(path) != std::string::npos);
  CHECK(elbow_predict_model_load("/", nullptr) == nullptr);
  CHECK(errno == EISDIR);
}

TEST_CASE("streams fill a resource by their weights above their floors") {
  using Numbers = std::array<Lanes<2>, 2>;
  // The second lane has a resource that holds the floor only in part.
  const std::array<Lanes<2>, 1> capacity = {{{8, 1}}};
  const std::array<Passage, 2> passages = {{{0, 0}, {1, 0}}};
  const Numbers cost = {{{1, 1}, {1, 1}}};
  const Numbers floor = {{{0, 0}, {2, 2}}};
  Numbers demand = {{{10, 10}, {10, 10}}};
  std::array<double, 2> weight = {1, 1};
  Numbers rate{}, active{};
  std::array<Lanes<2>, 1> free{}, taken{};
  const auto filled = [&] {
    fill(Network<2>{demand, floor, weight, capacity, passages, cost, rate, active, free, taken});
    CHECK(rate[0][1] == doctest::Approx(0));
    CHECK(rate[1][1] == doctest::Approx(1));
    return Streams{rate[0][0], rate[1][0], 0, 0};
  };
  CHECK(filled()[0] == doctest::Approx(3));
  CHECK(filled()[1] == doctest::Approx(5));
  weight = {1, 0};  // only its floor until the other has enough
  CHECK(filled()[0] == doctest::Approx(6));
  CHECK(filled()[1] == doctest::Approx(2));
  demand[0] = {3, 3};
  CHECK(filled()[0] == doctest::Approx(3));
  CHECK(filled()[1] == doctest::Approx(5));
}
