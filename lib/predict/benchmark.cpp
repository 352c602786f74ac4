// How long elbow_predict and elbow_predict_for_load take a call, and elbow_predict_model_load, in CPU time of this thread: what
// other processes do does not count. Prints one JSON object.
//
//     predict_benchmark M.json [flow|robust|threshold]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include "c_interface.hpp"
#include "elbowroom/predict.h"

namespace {

constexpr int kRounds = 201;
constexpr int kCalls = 20'000;
constexpr int kLoads = 11;
constexpr int kLoadRounds = 101;
constexpr int kLoadCalls = 10;

double now_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e9 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec);
}

struct Situation {
  int n, n_other, comp_node, comm_node;
};

// Situations in no order, so that every look-up is somewhere else in the table.
std::vector<Situation> situations(const elbow_predict_machine& machine, bool other) {
  std::mt19937 random(1);
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  std::vector<Situation> prediction;
  for (int i = 0; i < kCalls; ++i) {
    const int n = below(machine.cores_first_socket + 1);
    prediction.push_back({n, other ? below(machine.cores_other + 1) : 0, below(machine.nodes), below(machine.nodes)});
  }
  return prediction;
}

struct Times {
  double least;
  double median;
};

Times of(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2]};
}

Times call_times(const elbow_predict_model* model, const std::vector<Situation>& situations) {
  std::vector<double> times;
  double sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double start = now_ns();
    for (const Situation& one : situations) {
      auto prediction = elbowroom::c_interface::sized<elbow_predict_result>();
      if (elbow_predict(model, one.n, one.n_other, one.comp_node, one.comm_node, &prediction) == 0) {
        sum += prediction.comm_together.value;
      }
    }
    times.push_back((now_ns() - start) / static_cast<double>(situations.size()));
  }
  // Keeps the calls: the sum is used.
  return sum < 0 ? Times{} : of(times);
}

// Microseconds of a call for that load, the median; below 0 where it is refused.
double load_time(const elbow_predict_model* model, const elbow_predict_load& load) {
  std::vector<double> times;
  elbow_predict_interval groups[4];
  elbow_predict_interval copies[2];
  auto prediction = elbowroom::c_interface::sized<elbow_predict_load_result>();
  prediction.groups = groups;
  prediction.copies = copies;
  for (int round = 0; round < kLoadRounds; ++round) {
    const double start = now_ns();
    for (int call = 0; call < kLoadCalls; ++call) {
      if (elbow_predict_for_load(model, &load, &prediction) != 0) {
        return -1;
      }
    }
    times.push_back((now_ns() - start) / 1e3 / kLoadCalls);
  }
  return of(times).median;
}

// Loads of real programs, from one that is nearly a situation to one that uses all of a node.
void print_loads(const elbow_predict_model* model, const elbow_predict_machine& machine) {
  const int half = std::max(machine.cores_first_socket / 2, 1);
  const int last = machine.nodes - 1;
  const elbow_predict_group one[] = {{0, 0, half, 0.0}};
  const elbow_predict_group several[] = {{0, 0, half, 0.5}, {1, last, half, 0.0}, {1, 0, 1, 0.0}, {0, last, 1, 0.0}};
  const elbow_predict_messages large = {sizeof(elbow_predict_messages), 0, ELBOW_PREDICT_RECEIVE, 0, 1};
  const elbow_predict_messages small = {sizeof(elbow_predict_messages), 0, ELBOW_PREDICT_BOTH, 4096, 2};
  const elbow_predict_copy copies[] = {{0, 12000.0}, {last, 12000.0}};
  constexpr std::size_t kBytes = sizeof(elbow_predict_load);
  const struct {
    const char* name;
    elbow_predict_load load;
  } situations[] = {
      {"one_group", {kBytes, one, 1, &large, nullptr, 0}},
      {"small_messages", {kBytes, one, 1, &small, nullptr, 0}},
      {"two_groups", {kBytes, several, 2, &large, nullptr, 0}},
      {"four_groups", {kBytes, several, 4, &large, nullptr, 0}},
      {"everything", {kBytes, several, 4, &small, copies, 2}},
  };
  for (const auto& [name, load] : situations) {
    std::printf(", \"%s_us\": %.1f", name, load_time(model, load));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: %s M.json [flow|robust|threshold]\n", argv[0]);
    return 2;
  }
  std::vector<double> loading;
  elbow_predict_model* model = nullptr;
  for (int load = 0; load < kLoads; ++load) {
    elbow_predict_model_free(model);
    const double start = now_ns();
    model = elbow_predict_model_load(argv[1], argc > 2 ? argv[2] : nullptr);
    loading.push_back((now_ns() - start) / 1e6);
    if (model == nullptr) {
      std::fprintf(stderr, "%s\n", elbow_predict_error());
      return 1;
    }
  }
  auto machine = elbowroom::c_interface::sized<elbow_predict_machine>();
  elbow_predict_model_machine(model, &machine);
  const Times one = call_times(model, situations(machine, false));
  const Times both = call_times(model, situations(machine, true));
  std::printf(
      "{\"machine\": \"%s\", \"model\": \"%s\", \"load_ms\": %.2f, \"call_ns\": %.1f, \"call_ns_least\": %.1f, "
      "\"both_sockets_call_ns\": %.1f, \"both_sockets_call_ns_least\": %.1f",
      machine.name, machine.model, of(loading).median, one.median, one.least, both.median, both.least);
  print_loads(model, machine);
  std::printf("}\n");
  elbow_predict_model_free(model);
  return 0;
}
