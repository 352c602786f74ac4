// Many threads ask one model at once; the thread sanitizer looks on.
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "test_document.hpp"

using namespace elbowroom::predict::test;

namespace {

bool same(const elbow_predict_result& a, const elbow_predict_result& b) {
  const auto equal = [](const elbow_predict_interval& one, const elbow_predict_interval& other) {
    return one.value == other.value && one.low == other.low && one.high == other.high;
  };
  return equal(a.comp_alone, b.comp_alone) && equal(a.comm_alone, b.comm_alone) &&
         equal(a.comp_together, b.comp_together) && equal(a.comm_together, b.comm_together) && a.flags == b.flags;
}

}  // namespace

TEST_CASE("threads that ask at once get the same answers, and errors of their own") {
  elbow_predict_model* model = parsed(document());
  REQUIRE(model != nullptr);
  std::atomic<int> wrong{0};
  const auto ask = [&](int thread) {
    for (int round = 0; round < 200; ++round) {
      auto first = elbowroom::c_interface::sized<elbow_predict_result>();
      auto second = elbowroom::c_interface::sized<elbow_predict_result>();
      const int n = (round + thread) % (kCores + 1);
      if (elbow_predict(model, n, round % (kCores + 1), round % 2, thread % 2, &first) != 0 ||
          elbow_predict(model, n, round % (kCores + 1), round % 2, thread % 2, &second) != 0 || !same(first, second)) {
        wrong += 1;
      }
      const elbow_predict_group groups[] = {{0, 0, 1 + n % 2, 0.5}, {0, 1, 1, 0.0}};
      const elbow_predict_messages messages = {sizeof(elbow_predict_messages), thread % 2, ELBOW_PREDICT_BOTH, 4096, 2};
      const elbow_predict_load load = {sizeof(elbow_predict_load), groups, 2, &messages, nullptr, 0};
      auto once = elbowroom::c_interface::sized<elbow_predict_load_result>();
      auto again = elbowroom::c_interface::sized<elbow_predict_load_result>();
      if (elbow_predict_for_load(model, &load, &once) != 0 || elbow_predict_for_load(model, &load, &again) != 0 ||
          once.comm_together.low != again.comm_together.low || !(once.comm_together.value > 0)) {
        wrong += 1;
      }
      if (elbow_predict(model, 100 + thread, 0, 0, 0, &first) != -1 ||
          std::string(elbow_predict_error()).find("n " + std::to_string(100 + thread) + ":") != 0) {
        wrong += 1;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back(ask, thread);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(wrong == 0);
  elbow_predict_model_free(model);
}
