#include "flow.hpp"

#include <algorithm>
#include <cmath>

#include "filling.hpp"

namespace elbowroom::predict {
namespace {

// Medians of nine equally likely slices of a normal variable, scaled to variance 1.
constexpr std::array<double, 9> jitter = {-1.711094, -1.038997, -0.633067, -0.303096, 0.0,
                                          0.303096,  0.633067,  1.038997,  1.711094};

constexpr double normal_90 = 1.6448536269514722;  // half of the 90 % interval, in standard deviations
constexpr double least_rate = 1e-9;               // MB/s; below it a logarithm means nothing

struct FlowParameters {
  double core_local, core_remote, comm_first, comm_second, uplink, link, controller, port, crossing, root, floor_local,
      floor_remote, weight_local, weight_remote, cost_local, cost_remote, far_weight, dip_local, dip_remote, rise_local,
      rise_remote, excess_local, excess_remote;
};

FlowParameters named(const double* p) {
  return {p[0],  p[1],  p[2],  p[3],  p[4],  p[5],  p[6],  p[7],  p[8],  p[9],  p[10], p[11],
          p[12], p[13], p[14], p[15], p[16], p[17], p[18], p[19], p[20], p[21], p[22]};
}
static_assert(flow_names.size() == 23 && sizeof(FlowParameters) == 23 * sizeof(double));

struct Stream {
  double demand;
  double weight;
  double floor = 0;
  double cost = 1;
};

struct Rates {
  double first;
  double second;
};

// Two streams in one resource, the second with a floor and a cost: `fill` in closed form.
Rates pair(const Stream& x, const Stream& y, double capacity) {
  const double kept = std::min(std::min(y.floor, y.demand), capacity / y.cost);
  const double share = kept + (capacity - y.cost * kept) * (y.weight / (x.weight + y.cost * y.weight));
  const double second = std::min(y.demand, std::max(share, (capacity - x.demand) / y.cost));
  return {std::min(x.demand, std::max(capacity - y.cost * second, 0.0)), second};
}

// Demands and capacities in one situation at one value of the jitter.
class System {
 public:
  System(const FlowParameters& p, const FlowCase& asked, double z)
      : p_(p),
        asked_(asked),
        g_(std::max(1 + (z < 0 ? p.dip_local : p.rise_local) * z, 0.0)),
        h_(std::max(1 + (z < 0 ? p.dip_remote : p.rise_remote) * z, 0.0)),
        all_(asked.near * p.core_local + asked.far * p.core_remote) {
    const bool remote = asked.far > 0;
    const double comm = asked.second ? p.comm_second : p.comm_first;
    near_ = {std::min(asked.near * p.core_local, p.uplink * g_), asked.near};
    far_ = {std::min(asked.far * p.core_remote, p.link * h_), asked.far * p.far_weight};
    messages_ = {comm, remote ? p.weight_remote : p.weight_local, (remote ? p.floor_remote : p.floor_local) * comm,
                 remote ? p.cost_remote : p.cost_local};
  }

  // Computation without messages in its node, the far cores with that demand.
  double alone(double far_demand) const {
    const Stream none{0, 0};
    const Stream far{std::min(far_demand, port(none)), far_.weight};
    const Rates rates = pair(near_, far, controller(none));
    return rates.first + rates.second;
  }
  double alone() const { return alone(far_.demand); }

  // Both sides: computation, communication.
  Rates together() const {
    if (!asked_.same) {
      return in_different_nodes();
    }
    return asked_.near > 0 && asked_.far > 0 ? from_both_sockets() : from_one_socket();
  }

 private:
  double controller(const Stream& messages) const {
    const double over = std::max(all_ + messages_.cost * messages.demand - p_.controller, 0.0);
    return std::max(p_.controller - p_.excess_local * over, messages_.cost * messages.floor) * g_;
  }

  double port(const Stream& messages) const {
    const double demand = asked_.far * p_.core_remote + messages_.cost * messages.demand;
    const double over = std::max(demand - p_.port, 0.0);
    return std::max(p_.port - p_.excess_remote * over, messages_.cost * messages.floor) * h_;
  }

  Rates from_one_socket() const {
    if (asked_.far > 0) {
      return pair(far_, messages_, std::min(controller(messages_), port(messages_)));
    }
    return pair(near_, messages_, controller(messages_));
  }

  Rates from_both_sockets() const {
    Network<3, 2> net;
    net.demand = {near_.demand, far_.demand, messages_.demand};
    net.floor = {0, 0, messages_.floor};
    net.weight = {near_.weight, far_.weight, messages_.weight};
    net.capacity = {controller(messages_), port(messages_)};
    net.route[0] = {1, 1, messages_.cost};
    net.route[1] = {0, 1, messages_.cost};
    const std::array<double, 3> rates = fill(net);
    return {rates[0] + rates[1], rates[2]};
  }

  Rates in_different_nodes() const {
    Stream messages = messages_;
    messages.demand = std::min(messages_.demand, std::max(p_.root * g_ - all_, p_.floor_local * messages_.demand));
    if (!asked_.beside || asked_.far <= 0) {
      return {alone(), messages.demand};
    }
    const Rates crossed = pair(far_, messages, p_.crossing * h_);
    return {alone(crossed.first), crossed.second};
  }

  const FlowParameters& p_;
  const FlowCase& asked_;
  double g_;
  double h_;
  double all_;  // what all computing cores ask for
  Stream near_{};
  Stream far_{};
  Stream messages_{};
};

}  // namespace

Streams flow_streams(const double* parameters, const FlowCase& asked) {
  const FlowParameters p = named(parameters);
  const double comm_alone = asked.second ? p.comm_second : p.comm_first;
  if (asked.near + asked.far <= 0) {
    return {0.0, comm_alone, 0.0, comm_alone};
  }
  Streams sum{0.0, 0.0, 0.0, 0.0};
  for (const double z : jitter) {
    const System system(p, asked, z);
    const Rates together = system.together();
    sum[0] += system.alone();
    sum[2] += together.first;
    sum[3] += together.second;
  }
  const double values = static_cast<double>(jitter.size());
  return {sum[0] / values, comm_alone, sum[2] / values, sum[3] / values};
}

FlowAnswer flow_answer(const FlowPart& model, const FlowCase& asked) {
  FlowAnswer found;
  found.value = flow_streams(model.vectors.front().data(), asked);
  // The variance of the draws' logarithms, by Welford's recurrence: no memory, no cancellation.
  Streams mean{};
  Streams squares{};
  double count = 0;
  for (std::size_t draw = 1; draw < model.vectors.size(); ++draw) {
    const Streams drawn = flow_streams(model.vectors[draw].data(), asked);
    count += 1;
    for (int k = 0; k < stream_count; ++k) {
      const double log = std::log(std::max(drawn[k], least_rate));
      const double delta = log - mean[k];
      mean[k] += delta / count;
      squares[k] += delta * (log - mean[k]);
    }
  }
  for (int k = 0; k < stream_count; ++k) {
    const double variance = count > 0 ? squares[k] / count : 0.0;
    const double factor = std::exp(normal_90 * std::sqrt(variance + model.discrepancy[k] * model.discrepancy[k]));
    found.low[k] = found.value[k] / factor;
    found.high[k] = found.value[k] * factor;
  }
  return found;
}

}  // namespace elbowroom::predict
