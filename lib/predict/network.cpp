#include "network.hpp"

#include <algorithm>

namespace elbowroom::predict {
namespace {

using Lane = Lanes<kJitterValues>;

Lane times(double value, const Lane& by) {
  Lane result;
  for (std::size_t i = 0; i < kJitterValues; ++i) {
    result[i] = value * by[i];
  }
  return result;
}

Lane everywhere(double value) {
  Lane result;
  result.fill(value);
  return result;
}

// Sorted, each once.
void tidy(std::pmr::vector<int>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

NetworkRoom::NetworkRoom(std::pmr::memory_resource* memory)
    : requested(memory),
      demand(memory),
      floor(memory),
      rate(memory),
      active(memory),
      weight(memory),
      capacity(memory),
      free(memory),
      taken(memory),
      cost(memory) {}

void NetworkRoom::hold(std::size_t streams, std::size_t resources, std::size_t passages) {
  const auto grow = [](auto& vector, std::size_t count) { vector.resize(std::max(vector.size(), count)); };
  for (Vector<Lane>* of_streams : {&requested, &demand, &floor, &rate, &active}) {
    grow(*of_streams, streams);
  }
  grow(weight, streams);
  for (Vector<Lane>* of_resources : {&capacity, &free, &taken}) {
    grow(*of_resources, resources);
  }
  grow(cost, passages);
}

FlowNetwork::FlowNetwork(const Shape& shape, std::span<const GroupPlace> groups, std::span<const int> devices,
                         bool messages, NetworkRoom& room, std::pmr::memory_resource* memory)
    : groups_(groups),
      devices_(devices),
      messages_(messages),
      numa_per_socket_(shape.numa_per_socket),
      streams_(groups.size() + devices.size()),
      memory_(memory),
      stages_(memory),
      work_(room) {
  Vector<int> sockets(memory);
  for (const int node : devices) {
    sockets.push_back(socket(node));
  }
  tidy(sockets);
  stages_.reserve(sockets.size() + 2);
  add_devices();
  for (const int of : sockets) {
    add_crossing(of);
  }
  add_nodes();
  std::size_t resources = 0;
  std::size_t passages = 0;
  for (const Stage& stage : stages_) {
    resources = std::max(resources, stage.resources.size());
    passages = std::max(passages, stage.passages.size());
  }
  work_.hold(streams_, resources, passages);
}

// One resource more, and the streams of the stage that pass it.
template <typename Passes, typename CostOf>
void FlowNetwork::add(Stage& stage, Resource resource, Passes passes, CostOf cost_of) const {
  for (std::size_t k = 0; k < stage.streams.size(); ++k) {
    if (passes(stage.streams[k])) {
      stage.passages.push_back({k, stage.resources.size()});
      stage.costs.push_back(cost_of(stage.streams[k]));
    }
  }
  stage.resources.push_back(resource);
}

void FlowNetwork::add_devices() {
  if (devices_.size() < 2) {
    return;
  }
  Stage& stage = stages_.emplace_back(memory_);
  for (std::size_t k = groups_.size(); k < streams_; ++k) {
    stage.streams.push_back(k);
  }
  add(
      stage, {Capacity::devices}, [](std::size_t) { return true; }, [](std::size_t) { return Cost::one; });
}

// Of one socket: its devices and the remote groups with data there, where they are in different nodes.
void FlowNetwork::add_crossing(int of) {
  const auto there = [&](std::size_t k) { return socket(node(k)) == of && (device(k) || remote(k)); };
  Stage stage(memory_);
  for (std::size_t k = 0; k < streams_; ++k) {
    bool beside = false;
    for (std::size_t other = 0; other < streams_ && there(k); ++other) {
      beside = beside || (there(other) && device(other) != device(k) && node(other) != node(k));
    }
    if (beside) {
      stage.streams.push_back(k);
    }
  }
  if (stage.streams.empty()) {
    return;
  }
  const auto one = [](std::size_t) { return Cost::one; };
  add(
      stage, {Capacity::crossing}, [](std::size_t) { return true; }, one);
  Vector<int> sources(memory_);
  for (const std::size_t k : stage.streams) {
    if (!device(k)) {
      sources.push_back(groups_[k].socket);
    }
  }
  tidy(sources);
  for (const int source : sources) {
    add(
        stage, {Capacity::link}, [&](std::size_t k) { return !device(k) && groups_[k].socket == source; }, one);
  }
  stages_.push_back(std::move(stage));
}

void FlowNetwork::add_nodes() {
  Stage stage(memory_);
  Vector<int> sockets(memory_);
  Vector<int> nodes(memory_);
  for (std::size_t k = 0; k < streams_; ++k) {
    stage.streams.push_back(k);
    nodes.push_back(node(k));
    if (!device(k)) {
      sockets.push_back(groups_[k].socket);
    }
  }
  tidy(sockets);
  tidy(nodes);
  for (const int of : sockets) {
    add_socket(stage, of);
  }
  for (const int of : nodes) {
    add_node(stage, of);
  }
  if (!stage.resources.empty()) {
    stages_.push_back(std::move(stage));
  }
}

// What the cores of a socket pass on their way out: its uplink, and its links to other sockets.
void FlowNetwork::add_socket(Stage& stage, int of) const {
  const auto mine = [&](std::size_t k) { return !device(k) && groups_[k].socket == of; };
  add(stage, {Capacity::uplink}, mine, [&](std::size_t k) { return remote(k) ? Cost::across : Cost::one; });
  Vector<int> targets(memory_);
  for (std::size_t k = 0; k < groups_.size(); ++k) {
    if (mine(k) && remote(k)) {
      targets.push_back(socket(node(k)));
    }
  }
  tidy(targets);
  for (const int target : targets) {
    add(
        stage, {Capacity::link}, [&](std::size_t k) { return mine(k) && socket(node(k)) == target; },
        [](std::size_t) { return Cost::one; });
  }
}

void FlowNetwork::add_node(Stage& stage, int of) const {
  std::size_t local = 0;
  std::size_t across = 0;
  std::size_t devices = 0;
  for (std::size_t k = 0; k < streams_; ++k) {
    if (node(k) == of) {
      (device(k) ? devices : remote(k) ? across : local) += 1;
    }
  }
  if (across > 0) {
    add(
        stage, {Capacity::port}, [&](std::size_t k) { return node(k) == of && (device(k) || remote(k)); },
        [&](std::size_t k) { return device(k) ? Cost::device_in_port : Cost::one; });
  }
  if (local + across > 0 || devices > 1) {
    const bool reached = messages_ && node(streams_ - 1) == of;
    add(
        stage, {Capacity::controller, local == 0 && across > 0, reached}, [&](std::size_t k) { return node(k) == of; },
        [&](std::size_t k) { return device(k)   ? Cost::device
                                    : remote(k) ? Cost::remote
                                                : Cost::one; });
  }
}

// The largest demand, over the sockets, of groups with data in other nodes than `on`.
double FlowNetwork::pressing(int on, std::span<const NetworkStream> streams) const {
  double most = 0;
  for (std::size_t k = 0; k < groups_.size(); ++k) {
    double total = 0;
    for (std::size_t other = 0; other < groups_.size() && groups_[k].node != on; ++other) {
      const bool beside = groups_[other].socket == groups_[k].socket && groups_[other].node != on;
      total += beside ? streams[other].demand : 0.0;
    }
    most = std::max(most, total);
  }
  return most;
}

// Step 1: the root complex.
void FlowNetwork::press(const FlowParameters& p, std::span<const NetworkStream> streams) {
  for (std::size_t k = 0; k < streams_; ++k) {
    const double demand = streams[k].demand;
    work_.requested[k] = everywhere(demand);
    const auto elsewhere = [&](const GroupPlace& group) { return group.node != node(k); };
    if (!device(k) || !std::any_of(groups_.begin(), groups_.end(), elsewhere)) {
      continue;
    }
    const double others = pressing(node(k), streams);
    for (std::size_t i = 0; i < kJitterValues; ++i) {
      work_.requested[k][i] = std::min(demand, std::max(p.root * jitter_.g[i] - others, p.floor_first * demand));
    }
  }
}

void FlowNetwork::set_costs(const Stage& stage, const FlowParameters& p, std::span<const NetworkStream> streams) {
  for (std::size_t n = 0; n < stage.costs.size(); ++n) {
    const double own = streams[stage.streams[stage.passages[n].stream]].cost;
    switch (stage.costs[n]) {
      case Cost::one: work_.cost[n] = everywhere(1.0); break;
      case Cost::remote: work_.cost[n] = everywhere(p.remote_cost); break;
      case Cost::device: work_.cost[n] = everywhere(own); break;
      case Cost::device_in_port: work_.cost[n] = everywhere(own / p.remote_cost); break;
      case Cost::across:
        for (std::size_t i = 0; i < kJitterValues; ++i) {
          work_.cost[n][i] = std::min(1.0, p.uplink * jitter_.g[i] / (p.link * jitter_.h[i]));
        }
    }
  }
}

// Over-demand, by what was asked for before step 1, costs controllers and ports capacity, but never what is guaranteed.
Lane FlowNetwork::capacity(const Stage& stage, std::size_t resource, const FlowParameters& p,
                           std::span<const NetworkStream> streams) const {
  const auto left = [&](double whole, double excess) {
    double load = 0;
    double sure = 0;
    for (std::size_t n = 0; n < stage.passages.size(); ++n) {
      if (stage.passages[n].resource == resource) {
        const NetworkStream& stream = streams[stage.streams[stage.passages[n].stream]];
        load += work_.cost[n][0] * stream.demand;
        sure += work_.cost[n][0] * stream.floor;
      }
    }
    return std::max(whole - excess * std::max(load - whole, 0.0), sure);
  };
  const Resource& of = stage.resources[resource];
  switch (of.capacity) {
    case Capacity::devices: return everywhere(devices_capacity_);
    case Capacity::crossing: return times(p.crossing, jitter_.h);
    case Capacity::link: return times(p.link, jitter_.h);
    case Capacity::uplink: return times(p.uplink, jitter_.g);
    case Capacity::port: return times(left(p.port, p.excess_remote), jitter_.h);
    case Capacity::controller: break;
  }
  const double whole = of.messages ? p.controller * room_ : p.controller;
  return of.only_remote ? times(left(whole, p.excess_remote), jitter_.h)
                        : times(left(whole, p.excess_local), jitter_.g);
}

// What the streams get takes the place of what they asked for.
void FlowNetwork::fill_stage(const Stage& stage, std::span<const NetworkStream> streams) {
  const std::size_t count = stage.streams.size();
  const std::size_t resources = stage.resources.size();
  for (std::size_t k = 0; k < count; ++k) {
    const NetworkStream& stream = streams[stage.streams[k]];
    work_.demand[k] = work_.requested[stage.streams[k]];
    work_.weight[k] = stream.weight;
    for (std::size_t i = 0; i < kJitterValues; ++i) {
      work_.floor[k][i] = std::min(stream.floor, work_.demand[k][i]);
    }
  }
  fill(Network<kJitterValues>{{work_.demand.data(), count},
                              {work_.floor.data(), count},
                              {work_.weight.data(), count},
                              {work_.capacity.data(), resources},
                              stage.passages,
                              {work_.cost.data(), stage.passages.size()},
                              {work_.rate.data(), count},
                              {work_.active.data(), count},
                              {work_.free.data(), resources},
                              {work_.taken.data(), resources}});
  for (std::size_t k = 0; k < count; ++k) {
    work_.requested[stage.streams[k]] = work_.rate[k];
  }
}

void FlowNetwork::share(const FlowParameters& p, double devices, double room, std::span<const NetworkStream> streams,
                        std::span<double> rates) {
  jitter_ = jitter(p);
  devices_capacity_ = devices;
  room_ = room;
  press(p, streams);
  for (const Stage& stage : stages_) {
    set_costs(stage, p, streams);
    for (std::size_t r = 0; r < stage.resources.size(); ++r) {
      work_.capacity[r] = capacity(stage, r, p, streams);
    }
    fill_stage(stage, streams);
  }
  for (std::size_t k = 0; k < streams_; ++k) {
    double sum = 0;
    for (const double rate : work_.requested[k]) {
      sum += rate;
    }
    rates[k] = sum / static_cast<double>(kJitterValues);
  }
}

}  // namespace elbowroom::predict
