// FLOW for any load: groups of cores on any nodes, messages of any size and direction, copies. The law is
// that of docs/reference/models.md (Other loads); parameters have the names of the model file.
#pragma once

#include <array>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "elbowroom/predict.h"
#include "flow.hpp"
#include "model_file.hpp"
#include "network.hpp"

namespace elbowroom::predict {

// The parameters beyond FLOW's by the names they have in a file, and what they are where nothing was measured: sending
// and copying as receiving, threads as one, nothing limits devices. Extension::vectors begin in this order.
struct LoadName {
  const char* name;
  double neutral;
};
constexpr std::array<LoadName, 23> kLoadNames = {{{"peak", 1e9},
                                                  {"roofline", 4},
                                                  {"thrift", 1},
                                                  {"latency_load", 1},
                                                  {"relief", 0},
                                                  {"thread_gain", 1},
                                                  {"queueing", 1},
                                                  {"send", 1},
                                                  {"send_room", 1},
                                                  {"send_floor_first", 1},
                                                  {"send_floor_second", 1},
                                                  {"send_cost_first", 1},
                                                  {"send_cost_second", 1},
                                                  {"both", 1},
                                                  {"both_room", 1},
                                                  {"both_floor_first", 1},
                                                  {"both_floor_second", 1},
                                                  {"both_cost_first", 1},
                                                  {"both_cost_second", 1},
                                                  {"copy_floor", 1},
                                                  {"copy_weight", 1},
                                                  {"copy_cost", 1},
                                                  {"devices", 1e9}}};

struct LoadParameters {
  double peak, roofline, thrift, latency_load, relief, thread_gain, queueing, send, send_room, send_floor_first,
      send_floor_second, send_cost_first, send_cost_second, both, both_room, both_floor_first, both_floor_second,
      both_cost_first, both_cost_second, copy_floor, copy_weight, copy_cost, devices;
};
static_assert(sizeof(LoadParameters) == kLoadNames.size() * sizeof(double));

// One load, asked with many sets of parameters. `size`: bytes of a message, 0: large ones. The load and the extension must
// outlive it; all memory is `memory`'s. Nothing is checked.
class LoadLaw {
 public:
  LoadLaw(const Shape& shape, const Extension& extension, double calibrated_size, const elbow_predict_load& load,
          double size, std::pmr::memory_resource* memory);

  // `flow`: as kFlowNames; `more`: a row of the extension; `rates`: the streams, then each of the load's groups and copies
  // together with everything.
  void rates(const std::vector<double>& flow, const std::vector<double>& more, std::span<double> rates);

 private:
  struct Parts {  // of the groups, then the copies
    std::span<double> alone;
    std::span<double> without;   // messages
    std::span<double> together;  // with large messages, which come last
  };
  struct Exchange {  // messages, and the part of the time that they are beside the rest
    double busy;
    double alone;
    double together;
  };

  bool sized() const { return messages_ != nullptr && size_ > 0; }
  bool second(int node) const { return node >= shape_.numa_per_socket; }
  bool remote(const elbow_predict_group& group) const { return group.node / shape_.numa_per_socket != group.socket; }
  bool plain() const;
  FlowCase situation() const;
  double threads() const { return messages_ == nullptr ? 1 : messages_->threads; }

  FlowParameters effective(FlowParameters p, const LoadParameters& x) const;
  double core_demand(double core, double intensity, const LoadParameters& x) const;
  double share_plain(FlowParameters effective, const LoadParameters& x);
  double share_network(const FlowParameters& p, const FlowParameters& effective, const LoadParameters& x);
  void set_streams(const FlowParameters& p, const FlowParameters& effective, const LoadParameters& x);
  Exchange exchange(const FlowParameters& p, const std::vector<double>& more, const LoadParameters& x, double large,
                    double kept) const;

  const Shape& shape_;
  const Extension& extension_;
  double calibrated_size_;
  std::span<const elbow_predict_group> groups_;
  std::span<const elbow_predict_copy> copies_;
  const elbow_predict_messages* messages_;
  double size_;
  bool plain_;
  FlowCase situation_;
  std::pmr::vector<double> numbers_;
  Parts parts_;
  std::pmr::vector<GroupPlace> places_;
  std::pmr::vector<int> devices_;
  std::pmr::vector<NetworkStream> streams_;
  NetworkRoom room_;
  std::optional<FlowNetwork> cores_;     // groups only
  std::optional<FlowNetwork> without_;   // and copies
  std::optional<FlowNetwork> together_;  // and messages
};

}  // namespace elbowroom::predict
