#include "flow.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>

#include "filling.hpp"
#include "spread.hpp"

namespace elbowroom::predict {
namespace {

// Medians of nine equally likely slices of a normal variable, scaled to variance 1.
constexpr Lanes<kJitterValues> kNormal = {-1.711094, -1.038997, -0.633067, -0.303096, 0.0,
                                          0.303096,  0.633067,  1.038997,  1.711094};

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

struct Parts {
  double local;
  double remote;
  double messages;
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

// Local and remote cores and messages in one node, at all values of the jitter: they pass its controller, and all but the
// local ones its port.
struct BothSockets {
  using Lane = Lanes<kJitterValues>;

  void fill_rates() {
    static constexpr std::array<Passage, 5> kPassages = {{{0, 0}, {1, 0}, {2, 0}, {1, 1}, {2, 1}}};
    std::array<Lane, 3> active;
    std::array<Lane, 2> free, taken;
    fill(Network<kJitterValues>{demand, floor, weight, capacity, kPassages, cost, rate, active, free, taken});
  }

  std::array<Lane, 3> demand{}, floor{}, rate{};
  std::array<double, 3> weight{};
  std::array<Lane, 2> capacity{};
  std::array<Lane, 5> cost{};
};

// Demands and capacities in one situation at one value of the jitter.
class System {
 public:
  System(const FlowParameters& p, const FlowCase& situation, double g, double h)
      : p_(p),
        situation_(situation),
        g_(g),
        h_(h),
        cost_(situation.second ? p.cost_second : p.cost_first),
        port_cost_(cost_ / p.remote_cost) {
    const double comm = situation.second ? p.comm_second : p.comm_first;
    local_ = {std::min(situation.local * p.core_local, p.uplink * g_), situation.local * situation.local_served};
    remote_ = {std::min(situation.remote * p.core_remote, p.link * h_),
               situation.remote * situation.remote_served * p.remote_weight};
    messages_ = {comm, situation.second ? p.weight_second : p.weight_first,
                 (situation.second ? p.floor_second : p.floor_first) * comm};
  }

  // Computation without messages in its node, the remote cores with that demand.
  Rates alone(double remote_demand) const {
    const Stream none{0, 0};
    const Stream remote{std::min(remote_demand, port(none)), remote_.weight};
    return pair(local_, remote, {{controller(none, p_.controller), 1, p_.remote_cost}});
  }
  Rates alone() const { return alone(remote_.demand); }

  // But for cores of both sockets and messages in one node, which have a network.
  Parts together() const {
    if (!situation_.same) {
      return in_different_nodes();
    }
    if (situation_.remote <= 0) {
      const Rates rates = pair(local_, messages_, {{controller(messages_, p_.controller * situation_.room), 1, cost_}});
      return {rates.first, 0, rates.second};
    }
    const Rates rates = pair(remote_, messages_,
                             {{controller(messages_, p_.controller * situation_.room), p_.remote_cost, cost_},
                              {port(messages_), 1, port_cost_}});
    return {0, rates.first, rates.second};
  }

  void put_into(BothSockets& network, std::size_t at) const {
    network.demand[0][at] = local_.demand;
    network.demand[1][at] = remote_.demand;
    network.demand[2][at] = messages_.demand;
    network.floor[2][at] = messages_.floor;
    network.weight = {local_.weight, remote_.weight, messages_.weight};
    network.capacity[0][at] = controller(messages_, p_.controller * situation_.room);
    network.capacity[1][at] = port(messages_);
    const double costs[] = {1.0, p_.remote_cost, cost_, 1.0, port_cost_};
    for (std::size_t n = 0; n < std::size(costs); ++n) {
      network.cost[n][at] = costs[n];
    }
  }

 private:
  // `whole`: the capacity without over-demand.
  double controller(const Stream& messages, double whole) const {
    const bool only_remote = situation_.local <= 0;
    const double load = situation_.local * p_.core_local + p_.remote_cost * situation_.remote * p_.core_remote +
                        cost_ * messages.demand;
    const double excess = only_remote ? p_.excess_remote : p_.excess_local;
    const double left = whole - excess * std::max(load - whole, 0.0);
    return std::max(left, cost_ * messages.floor) * (only_remote ? h_ : g_);
  }

  double port(const Stream& messages) const {
    const double load = situation_.remote * p_.core_remote + port_cost_ * messages.demand;
    const double left = p_.port - p_.excess_remote * std::max(load - p_.port, 0.0);
    return std::max(left, port_cost_ * messages.floor) * h_;
  }

  Parts in_different_nodes() const {
    const double pressing = std::max(situation_.local * p_.core_local, situation_.remote * p_.core_remote);
    const double root = std::max(p_.root * g_ - pressing, p_.floor_first * messages_.demand);
    Stream messages = messages_;
    messages.demand = std::min(messages_.demand, root);
    Rates crossed{remote_.demand, messages.demand};
    if (situation_.beside && situation_.remote > 0) {
      crossed = pair(remote_, messages, {{p_.crossing * h_}});
    }
    const Rates cores = alone(crossed.first);
    return {cores.first, cores.second, crossed.second};
  }

  const FlowParameters& p_;
  const FlowCase& situation_;
  double g_;
  double h_;
  double cost_;       // what a byte of messages takes of a controller
  double port_cost_;  // and of a port
  Stream local_{};
  Stream remote_{};
  Stream messages_{};
};

void add(FlowRates& sum, const Parts& parts) {
  sum.local += parts.local;
  sum.remote += parts.remote;
  sum.messages += parts.messages;
}

}  // namespace

FlowParameters named(const double* p) {
  FlowParameters result;
  std::memcpy(&result, p, sizeof result);
  return result;
}

Jitter jitter(const FlowParameters& p) {
  Jitter result;
  for (std::size_t i = 0; i < kJitterValues; ++i) {
    const double z = kNormal[i];
    result.g[i] = std::max(1 + (z < 0 ? p.dip_local : p.rise_local) * z, 0.0);
    result.h[i] = std::max(1 + (z < 0 ? p.dip_remote : p.rise_remote) * z, 0.0);
  }
  return result;
}

FlowRates flow_rates(const FlowParameters& p, const FlowCase& situation) {
  FlowRates sum;
  if (situation.local + situation.remote <= 0) {
    sum.messages = situation.second ? p.comm_second : p.comm_first;
    return sum;
  }
  const Jitter capacities = jitter(p);
  const bool both = situation.same && situation.local > 0 && situation.remote > 0;
  BothSockets network;
  for (std::size_t i = 0; i < kJitterValues; ++i) {
    const System system(p, situation, capacities.g[i], capacities.h[i]);
    const Rates alone = system.alone();
    sum.local_alone += alone.first;
    sum.remote_alone += alone.second;
    if (both) {
      system.put_into(network, i);
    } else {
      add(sum, system.together());
    }
  }
  if (both) {
    network.fill_rates();
    for (std::size_t i = 0; i < kJitterValues; ++i) {
      add(sum, {network.rate[0][i], network.rate[1][i], network.rate[2][i]});
    }
  }
  for (double* rate : {&sum.local_alone, &sum.remote_alone, &sum.local, &sum.remote, &sum.messages}) {
    *rate /= static_cast<double>(kJitterValues);
  }
  return sum;
}

std::array<elbow_predict_interval, kStreamCount> flow_answer(const FlowPart& model, const FlowCase& situation) {
  Streams best;
  Streams drawn;
  std::array<Spread, kStreamCount> spreads;
  evaluate_draws(model.vectors.size(), best, drawn, spreads, [&](std::size_t row, std::span<double> streams) {
    const FlowParameters p = named(model.vectors[row].data());
    const FlowRates rates = flow_rates(p, situation);
    streams[0] = rates.local_alone + rates.remote_alone;
    streams[1] = situation.second ? p.comm_second : p.comm_first;
    streams[2] = rates.local + rates.remote;
    streams[3] = rates.messages;
  });
  const Streams& discrepancy = model.discrepancy_of(situation.local > 0, situation.remote > 0);
  std::array<elbow_predict_interval, kStreamCount> intervals;
  for (int k = 0; k < kStreamCount; ++k) {
    intervals[k] = spreads[k].around(best[k], discrepancy[k]);
  }
  return intervals;
}

}  // namespace elbowroom::predict
