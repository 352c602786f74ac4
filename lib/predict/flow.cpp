#include "flow.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "filling.hpp"

namespace elbowroom::predict {
namespace {

// Medians of nine equally likely slices of a normal variable, scaled to variance 1.
constexpr std::array<double, 9> jitter = {-1.711094, -1.038997, -0.633067, -0.303096, 0.0,
                                          0.303096,  0.633067,  1.038997,  1.711094};

constexpr double normal_90 = 1.6448536269514722;  // half of the 90 % interval, in standard deviations
constexpr double least_rate = 1e-9;               // MB/s; below it a logarithm means nothing

struct FlowParameters {
  double core_local, core_remote, comm_first, comm_second, uplink, link, controller, port, crossing, root, floor_first,
      floor_second, weight_first, weight_second, cost_first, cost_second, remote_weight, remote_cost, dip_local,
      dip_remote, rise_local, rise_remote, excess_local, excess_remote;
};
static_assert(sizeof(FlowParameters) == flow_names.size() * sizeof(double));

FlowParameters named(const double* p) {
  return {p[0],  p[1],  p[2],  p[3],  p[4],  p[5],  p[6],  p[7],  p[8],  p[9],  p[10], p[11],
          p[12], p[13], p[14], p[15], p[16], p[17], p[18], p[19], p[20], p[21], p[22], p[23]};
}

struct Stream {
  double demand;
  double weight;
  double floor = 0;
};

// A resource that two streams pass: its capacity and what a byte of either takes of it.
struct Shared {
  double capacity;
  double cost = 1;
  double other_cost = 1;
};

struct Rates {
  double first;
  double second;
};

// Two streams that pass the same resources, the second with a floor: `fill` in closed form.
Rates pair(const Stream& x, const Stream& y, std::initializer_list<Shared> passed) {
  double kept = std::min(y.floor, y.demand);
  for (const Shared& r : passed) {
    kept = std::min(kept, r.capacity / r.other_cost);
  }
  double grown = std::numeric_limits<double>::infinity();
  double left = grown;
  for (const Shared& r : passed) {
    grown = std::min(grown, (r.capacity - r.other_cost * kept) / (r.cost * x.weight + r.other_cost * y.weight));
    left = std::min(left, (r.capacity - r.cost * x.demand) / r.other_cost);
  }
  const double second = std::min(y.demand, std::max(kept + y.weight * grown, left));
  double first = std::numeric_limits<double>::infinity();
  for (const Shared& r : passed) {
    first = std::min(first, (r.capacity - r.other_cost * second) / r.cost);
  }
  return {std::min(x.demand, std::max(first, 0.0)), second};
}

// Demands and capacities in one situation at one value of the jitter.
class System {
 public:
  System(const FlowParameters& p, const FlowCase& asked, double z)
      : p_(p),
        asked_(asked),
        g_(std::max(1 + (z < 0 ? p.dip_local : p.rise_local) * z, 0.0)),
        h_(std::max(1 + (z < 0 ? p.dip_remote : p.rise_remote) * z, 0.0)),
        cost_(asked.second ? p.cost_second : p.cost_first),
        port_cost_(cost_ / p.remote_cost) {
    const double comm = asked.second ? p.comm_second : p.comm_first;
    local_ = {std::min(asked.local * p.core_local, p.uplink * g_), asked.local};
    remote_ = {std::min(asked.remote * p.core_remote, p.link * h_), asked.remote * p.remote_weight};
    messages_ = {comm, asked.second ? p.weight_second : p.weight_first,
                 (asked.second ? p.floor_second : p.floor_first) * comm};
  }

  // Computation without messages in its node, the remote cores with that demand.
  double alone(double remote_demand) const {
    const Stream none{0, 0};
    const Stream remote{std::min(remote_demand, port(none)), remote_.weight};
    const Rates rates = pair(local_, remote, {{controller(none), 1, p_.remote_cost}});
    return rates.first + rates.second;
  }
  double alone() const { return alone(remote_.demand); }

  // Both sides: computation, communication.
  Rates together() const {
    if (!asked_.same) {
      return in_different_nodes();
    }
    if (asked_.remote <= 0) {
      return pair(local_, messages_, {{controller(messages_), 1, cost_}});
    }
    if (asked_.local <= 0) {
      return pair(remote_, messages_,
                  {{controller(messages_), p_.remote_cost, cost_}, {port(messages_), 1, port_cost_}});
    }
    return from_both_sockets();
  }

 private:
  double controller(const Stream& messages) const {
    const bool only_remote = asked_.local <= 0;
    const double load =
        asked_.local * p_.core_local + p_.remote_cost * asked_.remote * p_.core_remote + cost_ * messages.demand;
    const double excess = only_remote ? p_.excess_remote : p_.excess_local;
    const double left = p_.controller - excess * std::max(load - p_.controller, 0.0);
    return std::max(left, cost_ * messages.floor) * (only_remote ? h_ : g_);
  }

  double port(const Stream& messages) const {
    const double load = asked_.remote * p_.core_remote + port_cost_ * messages.demand;
    const double left = p_.port - p_.excess_remote * std::max(load - p_.port, 0.0);
    return std::max(left, port_cost_ * messages.floor) * h_;
  }

  Rates from_both_sockets() const {
    Network<3, 2> net;
    net.demand = {local_.demand, remote_.demand, messages_.demand};
    net.floor = {0, 0, messages_.floor};
    net.weight = {local_.weight, remote_.weight, messages_.weight};
    net.capacity = {controller(messages_), port(messages_)};
    net.cost[0] = {1, p_.remote_cost, cost_};
    net.cost[1] = {0, 1, port_cost_};
    const std::array<double, 3> rates = fill(net);
    return {rates[0] + rates[1], rates[2]};
  }

  Rates in_different_nodes() const {
    const double pressing = std::max(asked_.local * p_.core_local, asked_.remote * p_.core_remote);
    const double root = std::max(p_.root * g_ - pressing, p_.floor_first * messages_.demand);
    Stream messages = messages_;
    messages.demand = std::min(messages_.demand, root);
    if (!asked_.beside || asked_.remote <= 0) {
      return {alone(), messages.demand};
    }
    const Rates crossed = pair(remote_, messages, {{p_.crossing * h_}});
    return {alone(crossed.first), crossed.second};
  }

  const FlowParameters& p_;
  const FlowCase& asked_;
  double g_;
  double h_;
  double cost_;       // what a byte of messages takes of a controller
  double port_cost_;  // and of a port
  Stream local_{};
  Stream remote_{};
  Stream messages_{};
};

}  // namespace

Streams flow_streams(const double* parameters, const FlowCase& asked) {
  const FlowParameters p = named(parameters);
  const double comm_alone = asked.second ? p.comm_second : p.comm_first;
  if (asked.local + asked.remote <= 0) {
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
