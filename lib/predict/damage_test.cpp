// Damaged files: every one is either refused with a sentence or answers without a crash; the address and undefined
// behaviour sanitizers look on. ELBOW_PREDICT_DAMAGE sets how many files (default 2000), the seed is fixed.
#include <doctest/doctest.h>

#include <cerrno>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "test_document.hpp"

using namespace elbowroom::predict::test;

namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t count) { return count == 0 ? 0 : random() % count; }

// Bytes changed, removed, doubled or cut off.
std::string torn(std::string text, Random& random) {
  for (std::size_t times = 1 + below(random, 4); times > 0; --times) {
    const std::size_t at = below(random, text.size());
    const std::size_t length = 1 + below(random, 40);
    switch (below(random, 5)) {
      case 0: text[at] = static_cast<char>(random()); break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(below(random, text.size()), length)); break;
      case 3: text.resize(at); break;
      default: text.insert(at, below(random, 2) == 0 ? "1e999" : "[[[[{\"a\":");
    }
    if (text.empty()) {
      return text;
    }
  }
  return text;
}

void collect(json& value, std::vector<json*>& places) {
  places.push_back(&value);
  if (value.is_structured()) {
    for (json& item : value) {
      collect(item, places);
    }
  }
}

// Values of the wrong type or size at the right place: what passes the parser and must be found by the checks.
std::string wrong(Random& random) {
  json file = document();
  for (std::size_t times = 1 + below(random, 3); times > 0; --times) {
    std::vector<json*> places;
    collect(file, places);
    json& place = *places[below(random, places.size())];
    const json values[] = {nullptr,
                           true,
                           -1,
                           0,
                           1,
                           2.5,
                           1e300,
                           -1e300,
                           1e-300,
                           4096,
                           9007199254740993LL,
                           "text",
                           "",
                           json::array(),
                           json::object(),
                           {1, 2},
                           {{"a", 1}}};
    place = values[below(random, std::size(values))];
  }
  return file.dump();
}

// All that a load may hold, by both laws of FLOW.
void ask_for_loads(const elbow_predict_model* model, const elbow_predict_machine& machine) {
  const int last = machine.nodes - 1;
  const elbow_predict_group groups[] = {{0, 0, 1, 0.5}, {machine.sockets - 1, 0, 1, 0.0}, {0, last, 1, 0.0}};
  const elbow_predict_copy copies[] = {{0, 9000.0}, {last, 5000.0}};
  constexpr std::size_t kBytes = sizeof(elbow_predict_messages);
  const elbow_predict_messages messages[] = {{kBytes, last, ELBOW_PREDICT_RECEIVE, 0, 1},
                                             {kBytes, 0, ELBOW_PREDICT_SEND, 1, 3},
                                             {kBytes, 0, ELBOW_PREDICT_BOTH, 1u << 30, 2}};
  elbow_predict_interval of_groups[3];
  elbow_predict_interval of_copies[2];
  for (const std::size_t count : {1, 3}) {
    for (const std::size_t copying : {0, 2}) {
      for (const elbow_predict_messages& message : messages) {
        const elbow_predict_load load = {sizeof(elbow_predict_load), groups, count, &message, copies, copying};
        auto prediction = elbowroom::c_interface::sized<elbow_predict_load_result>();
        prediction.groups = of_groups;
        prediction.copies = of_copies;
        errno = 0;
        if (elbow_predict_for_load(model, &load, &prediction) == 0) {
          CHECK(prediction.comm_together.value >= 0);
          CHECK(of_groups[0].value >= 0);
        } else {
          CHECK((errno == EINVAL || errno == ENOTSUP || errno == EDOM));
        }
      }
    }
  }
}

void ask_for_cases(const std::string& text) {
  errno = 0;
  elbow_predict_gpu_model* gpu = elbow_predict_gpu_parse(text.data(), text.size());
  if (gpu == nullptr) {
    CHECK((errno == EBADMSG || errno == ENOTSUP));
    return;
  }
  constexpr std::size_t kCase = sizeof(elbow_predict_gpu_case);
  const elbow_predict_gpu_case cases[] = {
      {kCase, ELBOW_PREDICT_GPU_GEMM, ELBOW_PREDICT_GPU_SM_IDLE, ELBOW_PREDICT_GPU_NOWHERE, 8, -1, 0, 0.0, {}},
      {kCase,
       ELBOW_PREDICT_GPU_GEMM,
       ELBOW_PREDICT_GPU_SM_TARGET,
       ELBOW_PREDICT_GPU_NOWHERE,
       3,
       -1,
       0,
       0.0,
       {1, 2147483647, 1}},
      {kCase, ELBOW_PREDICT_GPU_TRIAD, ELBOW_PREDICT_GPU_SM_COPY, ELBOW_PREDICT_GPU_HOST, 1, 0, 1, 1e9, {}},
      {kCase, ELBOW_PREDICT_GPU_TRIAD, ELBOW_PREDICT_GPU_COPY, ELBOW_PREDICT_GPU_D2H, 0, -1, 0, 0.0, {}},
      {kCase, ELBOW_PREDICT_GPU_CHAIN, ELBOW_PREDICT_GPU_COPY, ELBOW_PREDICT_GPU_D2D, 0, -1, 0, 0.0, {}},
      {kCase, -1, 9, 99, -5, -2, 7, -1.0, {-1, 0, 2}},
  };
  for (const elbow_predict_gpu_case& asked : cases) {
    auto prediction = elbowroom::c_interface::sized<elbow_predict_gpu_result>();
    errno = 0;
    if (elbow_predict_gpu(gpu, &asked, &prediction) != 0) {
      CHECK((errno == EINVAL || errno == ENOTSUP || errno == EDOM));
    }
  }
  elbow_predict_gpu_free(gpu);
}

void read_and_ask(const std::string& text) {
  ask_for_cases(text);
  for (const char* name : {static_cast<const char*>(nullptr), "threshold"}) {
    errno = 0;
    elbow_predict_model* model = elbow_predict_model_parse(text.data(), text.size(), name);
    if (model == nullptr) {
      CHECK((errno == EBADMSG || errno == ENOTSUP));
      CHECK(elbow_predict_error()[0] != '\0');
      continue;
    }
    auto machine = elbowroom::c_interface::sized<elbow_predict_machine>();
    CHECK(elbow_predict_model_machine(model, &machine) == 0);
    auto prediction = elbowroom::c_interface::sized<elbow_predict_result>();
    for (const int n : {0, 1, machine.cores_first_socket}) {
      for (const int n_other : {0, machine.cores_other}) {
        elbow_predict(model, n, n_other, 0, machine.nodes - 1, &prediction);
        elbow_predict(model, n, n_other, machine.nodes - 1, machine.nodes - 1, &prediction);
      }
    }
    ask_for_loads(model, machine);
    elbow_predict_model* resized = elbow_predict_model_at_size(model, 1000);
    elbow_predict(resized, 1, 0, 0, 0, &prediction);
    elbow_predict_model_free(resized);
    elbow_predict_model_free(model);
  }
}

}  // namespace

TEST_CASE("damaged files are refused or answered, never a crash") {
  const char* wanted = std::getenv("ELBOW_PREDICT_DAMAGE");
  const int files = wanted != nullptr ? std::atoi(wanted) : 2000;
  Random random(20261);
  const std::string sound = document().dump();
  read_and_ask(sound);
  for (int file = 0; file < files; ++file) {
    read_and_ask(file % 2 == 0 ? torn(sound, random) : wrong(random));
  }
}

TEST_CASE("nesting deeper than any stack is refused") {
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  read_and_ask(deep);
  read_and_ask(std::string(200000, '['));
  read_and_ask("{\"schema\":\"elbowroom/model\",\"version\":1,\"machine\":" + deep + "}");
}
