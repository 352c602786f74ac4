#include "flow_load.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace elbowroom::predict {
namespace {

LoadParameters of_loads(const std::vector<double>& row) {
  LoadParameters result;
  std::memcpy(&result, row.data(), sizeof result);
  return result;
}

double latency(const std::vector<double>& row, std::size_t regime) { return row[kLoadNames.size() + 2 * regime]; }
double speed(const std::vector<double>& row, std::size_t regime) { return row[kLoadNames.size() + 2 * regime + 1]; }

constexpr double kLeastRest = 0.01;  // part of a calibrated message's time that moves data, at least
constexpr double kLeastKept = 1e-9;

// Of a direction over receiving: bandwidth alone, room of a controller, floors, costs; and how many messages move at once.
struct Way {
  double alone = 1;
  double room = 1;
  double floor_first = 1;
  double floor_second = 1;
  double cost_first = 1;
  double cost_second = 1;
  double at_once = 1;
};

Way way(const elbow_predict_messages* messages, const LoadParameters& x) {
  switch (messages == nullptr ? ELBOW_PREDICT_RECEIVE : messages->direction) {
    case ELBOW_PREDICT_SEND:
      return {x.send, x.send_room, x.send_floor_first, x.send_floor_second, x.send_cost_first, x.send_cost_second, 1};
    case ELBOW_PREDICT_BOTH:
      return {x.both, x.both_room, x.both_floor_first, x.both_floor_second, x.both_cost_first, x.both_cost_second, 2};
    default: return {};
  }
}

// Y(k, A): the part of the NIC that k threads use, each of which alone would use 1/A.
double part_of_nic(double threads, double apart, double queueing) {
  const double total = apart + threads - 1;
  const double root = std::sqrt(std::max(total * total - 4 * (threads - 1) * (apart - queueing), 0.0));
  return std::min(2 * threads / (total + root), 1.0);
}

double gain(const Way& direction, double threads, const LoadParameters& x) {
  return direction.alone * x.thread_gain * part_of_nic(threads, x.thread_gain, x.queueing);
}

// What a core's weight is times that of one of the calibrated intensity.
double served(double part, const LoadParameters& x) { return part == 1 ? 1.0 : std::pow(part, x.thrift); }

template <typename T>
std::span<const T> span_of(const T* items, std::size_t count) {
  return {count > 0 ? items : nullptr, count};
}

}  // namespace

LoadLaw::LoadLaw(const Shape& shape, const Extension& extension, double calibrated_size, const elbow_predict_load& load,
                 double size, std::pmr::memory_resource* memory)
    : shape_(shape),
      extension_(extension),
      calibrated_size_(calibrated_size),
      groups_(span_of(load.groups, load.group_count)),
      copies_(span_of(load.copies, load.copy_count)),
      messages_(load.messages),
      size_(size),
      plain_(plain()),
      situation_(plain_ ? situation() : FlowCase{}),
      numbers_(3 * (groups_.size() + copies_.size() + 1), memory),
      places_(memory),
      devices_(memory),
      streams_(memory),
      room_(memory) {
  const std::size_t count = groups_.size() + copies_.size() + 1;
  parts_ = {{numbers_.data(), count}, {numbers_.data() + count, count}, {numbers_.data() + 2 * count, count}};
  if (plain_) {
    return;
  }
  for (const elbow_predict_group& group : groups_) {
    places_.push_back({group.socket, group.node});
  }
  for (const elbow_predict_copy& copy : copies_) {
    devices_.push_back(copy.node);
  }
  if (messages_ != nullptr) {
    devices_.push_back(messages_->node);
  }
  streams_.resize(places_.size() + devices_.size());
  const std::span<const int> devices = devices_;
  if (messages_ != nullptr) {
    together_.emplace(shape, places_, devices, true, room_, memory);
  }
  if (!copies_.empty() && (messages_ == nullptr || sized())) {
    without_.emplace(shape, places_, devices.first(copies_.size()), false, room_, memory);
  }
  cores_.emplace(shape, places_, devices.first(0), false, room_, memory);
}

// Whether it is a situation but for its parameters: one node, at most one group of either kind.
bool LoadLaw::plain() const {
  int sides[2] = {0, 0};
  for (const elbow_predict_group& group : groups_) {
    sides[remote(group) ? 1 : 0] += 1;
    if (group.node != groups_.front().node) {
      return false;
    }
  }
  return copies_.empty() && sides[0] <= 1 && sides[1] <= 1;
}

FlowCase LoadLaw::situation() const {
  double counts[2] = {0, 0};
  for (const elbow_predict_group& group : groups_) {
    counts[remote(group) ? 1 : 0] = group.count;
  }
  const int node = groups_.empty() ? 0 : groups_.front().node;
  const int comm = messages_ == nullptr ? node : messages_->node;
  const bool same = comm == node;
  return {counts[0], counts[1], same, !same && second(comm) == second(node), second(comm)};
}

// C(I) of cores that ask for `core` at the calibrated intensity.
double LoadLaw::core_demand(double core, double intensity, const LoadParameters& x) const {
  if (intensity <= extension_.intensity) {
    return core;
  }
  const double more =
      std::pow(core * intensity / x.peak, x.roofline) - std::pow(core * extension_.intensity / x.peak, x.roofline);
  return core * std::pow(1 + more, -1 / x.roofline);
}

// FLOW's parameters with those of these messages in the places of large ones that one thread receives.
FlowParameters LoadLaw::effective(FlowParameters p, const LoadParameters& x) const {
  const Way direction = way(messages_, x);
  const double more = gain(direction, threads(), x);
  for (double* scaled : {&p.comm_first, &p.comm_second, &p.weight_first, &p.weight_second}) {
    *scaled *= more;
  }
  p.floor_first = std::min(p.floor_first * direction.floor_first, 1.0);
  p.floor_second = std::min(p.floor_second * direction.floor_second, 1.0);
  p.cost_first *= direction.cost_first;
  p.cost_second *= direction.cost_second;
  return p;
}

// Fills the parts by the law of situations; what large messages keep.
double LoadLaw::share_plain(FlowParameters p, const LoadParameters& x) {
  FlowCase situation = situation_;
  situation.room = way(messages_, x).room;
  for (const elbow_predict_group& group : groups_) {
    double& core = remote(group) ? p.core_remote : p.core_local;
    const double demand = core_demand(core, group.intensity, x);
    (remote(group) ? situation.remote_served : situation.local_served) = served(demand / core, x);
    core = demand;
  }
  const FlowRates rates = flow_rates(p, situation);
  for (std::size_t k = 0; k < groups_.size(); ++k) {
    const bool across = remote(groups_[k]);
    const double alone = across ? rates.remote_alone : rates.local_alone;
    parts_.alone[k] = parts_.without[k] = alone;
    parts_.together[k] = messages_ == nullptr ? alone : across ? rates.remote : rates.local;
  }
  return messages_ == nullptr ? 1.0 : rates.messages / (situation.second ? p.comm_second : p.comm_first);
}

void LoadLaw::set_streams(const FlowParameters& p, const FlowParameters& q, const LoadParameters& x) {
  for (std::size_t k = 0; k < groups_.size(); ++k) {
    const elbow_predict_group& group = groups_[k];
    const double core = remote(group) ? p.core_remote : p.core_local;
    const double one = core_demand(core, group.intensity, x);
    const double own = remote(group) ? p.remote_weight : 1.0;
    streams_[k] = {group.count * one, group.count * own * served(one / core, x)};
  }
  for (std::size_t k = 0; k < copies_.size(); ++k) {
    const elbow_predict_copy& copy = copies_[k];
    const bool far = second(copy.node);
    const double floor = std::min((far ? p.floor_second : p.floor_first) * x.copy_floor, 1.0);
    const double weight =
        (far ? p.weight_second : p.weight_first) * x.copy_weight * copy.demand / (far ? p.comm_second : p.comm_first);
    const double cost = (far ? p.cost_second : p.cost_first) * x.copy_cost;
    streams_[groups_.size() + k] = {copy.demand, weight, floor * copy.demand, cost};
  }
  if (messages_ != nullptr) {
    const bool far = second(messages_->node);
    const double large = far ? q.comm_second : q.comm_first;
    streams_.back() = {large, far ? q.weight_second : q.weight_first, (far ? q.floor_second : q.floor_first) * large,
                       far ? q.cost_second : q.cost_first};
  }
}

// The same by the law of networks.
double LoadLaw::share_network(const FlowParameters& p, const FlowParameters& q, const LoadParameters& x) {
  set_streams(p, q, x);
  const auto share = [&](FlowNetwork& network, std::span<double> rates) {
    network.share(q, x.devices, way(messages_, x).room,
                  std::span<const NetworkStream>(streams_).first(network.streams()), rates);
  };
  share(*cores_, parts_.alone);
  if (without_) {
    share(*without_, parts_.without);
  } else {
    std::copy(parts_.alone.begin(), parts_.alone.end(), parts_.without.begin());
  }
  if (!together_) {
    std::copy(parts_.without.begin(), parts_.without.end(), parts_.together.begin());
    return 1.0;
  }
  share(*together_, parts_.together);
  return parts_.together.back() / streams_.back().demand;
}

LoadLaw::Exchange LoadLaw::exchange(const FlowParameters& p, const std::vector<double>& more, const LoadParameters& x,
                                    double large, double kept) const {
  if (!sized()) {
    return messages_ == nullptr ? Exchange{0, 0, 0} : Exchange{1, large, large * kept};
  }
  const std::vector<double>& switches = extension_.switches;
  const auto regime_of = [&](double size) {
    return static_cast<std::size_t>(std::upper_bound(switches.begin(), switches.end(), size) - switches.begin());
  };
  const std::size_t regime = regime_of(size_);
  const Way direction = way(messages_, x);
  const double comm = second(messages_->node) ? p.comm_second : p.comm_first;
  const double rest = std::max(kLeastRest, 1 - latency(more, regime_of(calibrated_size_)) * comm / calibrated_size_);
  const double unit = rest / (comm * speed(more, regime));
  const double waiting = latency(more, regime);
  const double moving = size_ * unit * direction.at_once / direction.alone;
  const double most = part_of_nic(threads(), x.thread_gain, x.queueing);
  const double apart = part_of_nic(threads(), x.thread_gain * (1 + waiting / moving), x.queueing);
  const double idle = 1 - std::min(apart / most, 1.0);
  const double of_large = std::max(kept, kLeastKept);
  const double moves = of_large + x.relief * idle * (1 - of_large);
  const double waits = waiting * (1 + x.latency_load * (1 / of_large - 1));
  const double beside = part_of_nic(threads(), x.thread_gain * (1 + moves * waits / moving), x.queueing);
  const double nic = direction.alone * x.thread_gain / unit;
  return {std::min(beside / most, 1.0), nic * apart, nic * moves * beside};
}

void LoadLaw::rates(const std::vector<double>& flow, const std::vector<double>& more, std::span<double> rates) {
  const FlowParameters p = named(flow.data());
  const LoadParameters x = of_loads(more);
  const FlowParameters q = effective(p, x);
  const double kept = plain_ ? share_plain(q, x) : share_network(p, q, x);
  const double large = messages_ == nullptr ? 0.0 : second(messages_->node) ? q.comm_second : q.comm_first;
  const Exchange comm = exchange(p, more, x, large, kept);
  const std::span<double> streams = rates.first(kStreamCount);
  const std::span<double> parts = rates.subspan(kStreamCount);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    parts[k] = (1 - comm.busy) * parts_.without[k] + comm.busy * parts_.together[k];
  }
  streams[0] = std::accumulate(parts_.alone.begin(), parts_.alone.begin() + groups_.size(), 0.0);
  streams[1] = comm.alone;
  streams[2] = std::accumulate(parts.begin(), parts.begin() + groups_.size(), 0.0);
  streams[3] = comm.together;
}

}  // namespace elbowroom::predict
