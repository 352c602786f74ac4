// FLOW evaluated for one set of parameters and one situation. What it computes is said step by step in
// src/elbowroom/model/flow.py and, for several streams in several resources, in src/elbowroom/model/filling.py; names are
// the same here.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "model_file.hpp"

namespace elbowroom::predict {

// The parameters by the names they have in a file; FlowPart::vectors are ordered like this.
constexpr std::array<const char*, 24> flow_names = {
    "core_local",   "core_remote",   "comm_first", "comm_second", "uplink",        "link",
    "controller",   "port",          "crossing",   "root",        "floor_first",   "floor_second",
    "weight_first", "weight_second", "cost_first", "cost_second", "remote_weight", "remote_cost",
    "dip_local",    "dip_remote",    "rise_local", "rise_remote", "excess_local",  "excess_remote"};

constexpr std::size_t flow_index(std::string_view name) {
  std::size_t index = 0;
  while (name != flow_names[index]) {
    ++index;
  }
  return index;
}

// Computing cores beside their data and of the other socket; whether messages go to the same node, to another node of
// that socket, and to the second socket.
struct FlowCase {
  double local;
  double remote;
  bool same;
  bool beside;
  bool second;
};

// `parameters`: as many numbers as flow_names, in that order. Allocates nothing.
Streams flow_streams(const double* parameters, const FlowCase& asked);

// The best value of each stream, and its 90 % interval from the draws and the discrepancy.
struct FlowAnswer {
  Streams value{};
  Streams low{};
  Streams high{};
};
FlowAnswer flow_answer(const FlowPart& model, const FlowCase& asked);

}  // namespace elbowroom::predict
