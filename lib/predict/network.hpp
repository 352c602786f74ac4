// FLOW with any number of groups of cores, messages and copies. The resources are those of
// docs/reference/models.md (Other loads).
#pragma once

#include <memory_resource>
#include <span>
#include <vector>

#include "flow.hpp"

namespace elbowroom::predict {

// Where a group of cores computes, and where its data is.
struct GroupPlace {
  int socket;
  int node;
};

// MB/s; groups have neither floor nor a cost of their own.
struct NetworkStream {
  double demand = 0;
  double weight = 0;
  double floor = 0;
  double cost = 1;
};

// What networks work in, one after the other; what it holds means nothing between two calls.
struct NetworkRoom {
  explicit NetworkRoom(std::pmr::memory_resource* memory);

  // Makes room for that many; cheapest if the largest comes first.
  void hold(std::size_t streams, std::size_t resources, std::size_t passages);

  template <typename T>
  using Vector = std::pmr::vector<T>;
  using Lane = Lanes<kJitterValues>;

  // What streams still ask for, and the numbers of the stage at hand.
  Vector<Lane> requested;
  Vector<Lane> demand, floor, rate, active;
  Vector<double> weight;
  Vector<Lane> capacity, free, taken;
  Vector<Lane> cost;
};

// The networks of one form: who passes what is found out once, the numbers come with each set of parameters. Streams are
// the groups, then the devices: copies and, if `messages`, these at the end. All other memory is `memory`'s.
class FlowNetwork {
 public:
  FlowNetwork(const Shape& shape, std::span<const GroupPlace> groups, std::span<const int> devices, bool messages,
              NetworkRoom& room, std::pmr::memory_resource* memory);

  std::size_t streams() const { return streams_; }

  // Fills `rates`, as many as there are streams, means over the jitter; `devices`: DEVICES, MB/s; `room`: what
  // the controller of the messages' node is times one of messages that arrive.
  void share(const FlowParameters& p, double devices, double room, std::span<const NetworkStream> streams,
             std::span<double> rates);

 private:
  using Lane = Lanes<kJitterValues>;
  template <typename T>
  using Vector = std::pmr::vector<T>;

  enum class Capacity : unsigned char { devices, crossing, link, uplink, port, controller };
  enum class Cost : unsigned char { one, across, remote, device, device_in_port };

  // Of a controller: whether all its groups are remote, and whether messages go there.
  struct Resource {
    Capacity capacity;
    bool only_remote = false;
    bool messages = false;
  };

  // Resources that are filled at once; `streams`: which they are, by the numbers that passages have here.
  struct Stage {
    explicit Stage(std::pmr::memory_resource* memory)
        : streams(memory), resources(memory), passages(memory), costs(memory) {}
    Vector<std::size_t> streams;
    Vector<Resource> resources;
    Vector<Passage> passages;
    Vector<Cost> costs;
  };

  bool device(std::size_t stream) const { return stream >= groups_.size(); }
  bool remote(std::size_t stream) const {
    return !device(stream) && socket(groups_[stream].node) != groups_[stream].socket;
  }
  int node(std::size_t stream) const {
    return device(stream) ? devices_[stream - groups_.size()] : groups_[stream].node;
  }
  int socket(int node) const { return node / numa_per_socket_; }

  template <typename Passes, typename CostOf>
  void add(Stage& stage, Resource resource, Passes passes, CostOf cost_of) const;
  void add_devices();
  void add_crossing(int of);
  void add_nodes();
  void add_socket(Stage& stage, int of) const;
  void add_node(Stage& stage, int of) const;

  double pressing(int on, std::span<const NetworkStream> streams) const;
  void press(const FlowParameters& p, std::span<const NetworkStream> streams);
  void set_costs(const Stage& stage, const FlowParameters& p, std::span<const NetworkStream> streams);
  Lane capacity(const Stage& stage, std::size_t resource, const FlowParameters& p,
                std::span<const NetworkStream> streams) const;
  void fill_stage(const Stage& stage, std::span<const NetworkStream> streams);

  std::span<const GroupPlace> groups_;
  std::span<const int> devices_;
  bool messages_;
  int numa_per_socket_;
  std::size_t streams_;
  std::pmr::memory_resource* memory_;
  Vector<Stage> stages_;
  NetworkRoom& work_;
  // What changes with the parameters.
  Jitter jitter_{};
  double devices_capacity_ = 0;
  double room_ = 1;
};

}  // namespace elbowroom::predict
