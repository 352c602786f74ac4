// How long elbow_predict takes a call, and elbow_predict_load, in CPU time of this thread: what other processes do does
// not count. Prints one JSON object.
//
//     predict_benchmark M.json [flow|robust|threshold]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include "elbowroom/predict.h"

namespace {

constexpr int rounds = 201;
constexpr int calls = 20'000;
constexpr int loads = 11;

double now_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e9 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec);
}

struct Asked {
  int n, n_other, comp_node, comm_node;
};

// Situations in no order, so that every look-up is somewhere else in the table.
std::vector<Asked> situations(const elbow_machine& machine, bool other) {
  std::mt19937 random(1);
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  std::vector<Asked> found;
  for (int i = 0; i < calls; ++i) {
    const int n = below(machine.cores_first_socket + 1);
    found.push_back({n, other ? below(machine.cores_other + 1) : 0, below(machine.nodes), below(machine.nodes)});
  }
  return found;
}

struct Times {
  double least;
  double median;
};

Times of(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2]};
}

Times call_times(const elbow_model* model, const std::vector<Asked>& asked) {
  std::vector<double> times;
  double sum = 0;
  for (int round = 0; round < rounds; ++round) {
    const double start = now_ns();
    for (const Asked& one : asked) {
      elbow_prediction found;
      if (elbow_predict(model, one.n, one.n_other, one.comp_node, one.comm_node, &found) == 0) {
        sum += found.comm_together.value;
      }
    }
    times.push_back((now_ns() - start) / static_cast<double>(asked.size()));
  }
  // Keeps the calls: the sum is used.
  return sum < 0 ? Times{} : of(times);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: %s M.json [flow|robust|threshold]\n", argv[0]);
    return 2;
  }
  std::vector<double> loading;
  elbow_model* model = nullptr;
  for (int load = 0; load < loads; ++load) {
    elbow_predict_free(model);
    const double start = now_ns();
    model = elbow_predict_load(argv[1], argc > 2 ? argv[2] : nullptr);
    loading.push_back((now_ns() - start) / 1e6);
    if (model == nullptr) {
      std::fprintf(stderr, "%s\n", elbow_predict_error());
      return 1;
    }
  }
  elbow_machine machine;
  elbow_predict_machine(model, &machine);
  const Times one = call_times(model, situations(machine, false));
  const Times both = call_times(model, situations(machine, true));
  std::printf(
      "{\"machine\": \"%s\", \"model\": \"%s\", \"load_ms\": %.2f, \"call_ns\": %.1f, \"call_ns_least\": %.1f, "
      "\"both_sockets_call_ns\": %.1f, \"both_sockets_call_ns_least\": %.1f}\n",
      machine.name, machine.model, of(loading).median, one.median, one.least, both.median, both.least);
  elbow_predict_free(model);
  return 0;
}
