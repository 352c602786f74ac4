// FLOW evaluated for one set of parameters and one situation. The law is that of
// docs/reference/models.md; parameters have the names of the model file.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "elbowroom/predict.h"
#include "filling.hpp"
#include "model_file.hpp"

namespace elbowroom::predict {

// The parameters by the names they have in a file; FlowPart::vectors are ordered like this.
constexpr std::array<const char*, 24> kFlowNames = {
    "core_local",   "core_remote",   "comm_first", "comm_second", "uplink",        "link",
    "controller",   "port",          "crossing",   "root",        "floor_first",   "floor_second",
    "weight_first", "weight_second", "cost_first", "cost_second", "remote_weight", "remote_cost",
    "dip_local",    "dip_remote",    "rise_local", "rise_remote", "excess_local",  "excess_remote"};

constexpr std::size_t flow_index(std::string_view name) {
  std::size_t index = 0;
  while (name != kFlowNames[index]) {
    ++index;
  }
  return index;
}

struct FlowParameters {
  double core_local, core_remote, comm_first, comm_second, uplink, link, controller, port, crossing, root, floor_first,
      floor_second, weight_first, weight_second, cost_first, cost_second, remote_weight, remote_cost, dip_local,
      dip_remote, rise_local, rise_remote, excess_local, excess_remote;
};
static_assert(sizeof(FlowParameters) == kFlowNames.size() * sizeof(double));

// `parameters`: as many numbers as kFlowNames, in that order.
FlowParameters named(const double* parameters);

// Capacities vary: g of what is local and h of what is remote, at the jitter's values, all equally likely.
constexpr std::size_t kJitterValues = 9;
struct Jitter {
  Lanes<kJitterValues> g;
  Lanes<kJitterValues> h;
};
Jitter jitter(const FlowParameters& p);

// Computing cores beside their data and of the other socket; whether messages go to the same node, to another node of
// that socket, and to the second socket; what the weights of local and of remote cores are times one, and the controller
// beside messages over that beside messages that arrive.
struct FlowCase {
  double local;
  double remote;
  bool same;
  bool beside;
  bool second;
  double local_served = 1;
  double remote_served = 1;
  double room = 1;
};

// MB/s of local and of remote cores, alone and together with messages, and of these.
struct FlowRates {
  double local_alone = 0;
  double remote_alone = 0;
  double local = 0;
  double remote = 0;
  double messages = 0;
};

// Allocates nothing.
FlowRates flow_rates(const FlowParameters& parameters, const FlowCase& situation);

// Each stream with its 90 % interval, from the draws and the discrepancy.
std::array<elbow_predict_interval, kStreamCount> flow_answer(const FlowPart& model, const FlowCase& situation);

}  // namespace elbowroom::predict
