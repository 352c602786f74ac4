// Sharing capacities: streams with a demand, a floor and a weight fill the resources they pass. The law is
// weighted max-min filling (docs/reference/models.md), for L networks at once that differ in numbers only.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace elbowroom::predict {

template <std::size_t L>
using Lanes = std::array<double, L>;

// A stream passes a resource.
struct Passage {
  std::size_t stream;
  std::size_t resource;
};

// Views into memory of the caller: by stream demand, floor, weight and what comes out, rate; by resource its capacity;
// by passage what a unit of the stream takes of the resource (0: it passes by). `active` (by stream), `free`, `taken`
// (by resource) are for `fill` to work in.
template <std::size_t L>
struct Network {
  std::span<const Lanes<L>> demand;
  std::span<const Lanes<L>> floor;
  std::span<const double> weight;
  std::span<const Lanes<L>> capacity;
  std::span<const Passage> passages;
  std::span<const Lanes<L>> cost;
  std::span<Lanes<L>> rate;
  std::span<Lanes<L>> active;
  std::span<Lanes<L>> free;
  std::span<Lanes<L>> taken;
};

namespace filling {

constexpr double kExhausted = 1e-12;  // relative: what is less than this from being full is full
constexpr double kEndless = std::numeric_limits<double>::infinity();

// What the resources have left, and which streams of that kind still grow. False if none does.
template <std::size_t L>
bool look(const Network<L>& net, bool eager) {
  std::copy(net.capacity.begin(), net.capacity.end(), net.free.begin());
  for (std::size_t p = 0; p < net.passages.size(); ++p) {
    const auto [k, r] = net.passages[p];
    for (std::size_t i = 0; i < L; ++i) {
      net.free[r][i] -= net.cost[p][i] * net.rate[k][i];
    }
  }
  for (Lanes<L>& free : net.free) {
    for (std::size_t i = 0; i < L; ++i) {
      free[i] = std::max(free[i], 0.0);
    }
  }
  for (std::size_t k = 0; k < net.demand.size(); ++k) {
    const double weight = eager ? std::max(net.weight[k], 0.0) : net.weight[k] > 0 ? 0.0 : 1.0;
    for (std::size_t i = 0; i < L; ++i) {
      const double demand = net.demand[k][i];
      net.active[k][i] = demand - net.rate[k][i] <= kExhausted * demand ? 0.0 : weight;
    }
  }
  for (std::size_t p = 0; p < net.passages.size(); ++p) {
    const auto [k, r] = net.passages[p];
    for (std::size_t i = 0; i < L; ++i) {
      const bool full = net.free[r][i] <= kExhausted * net.capacity[r][i] && net.cost[p][i] > 0;
      net.active[k][i] = full ? 0.0 : net.active[k][i];
    }
  }
  double most = 0;
  for (const Lanes<L>& active : net.active) {
    for (std::size_t i = 0; i < L; ++i) {
      most = std::max(most, active[i]);
    }
  }
  return most > 0;
}

// How far the active streams grow before one has met its demand or a full resource.
template <std::size_t L>
Lanes<L> step(const Network<L>& net) {
  Lanes<L> least;
  least.fill(kEndless);
  for (std::size_t k = 0; k < net.demand.size(); ++k) {
    for (std::size_t i = 0; i < L; ++i) {
      const double active = net.active[k][i];
      const double own = (net.demand[k][i] - net.rate[k][i]) / active;
      least[i] = std::min(least[i], active > 0 ? own : kEndless);
    }
  }
  std::fill(net.taken.begin(), net.taken.end(), Lanes<L>{});
  for (std::size_t p = 0; p < net.passages.size(); ++p) {
    const auto [k, r] = net.passages[p];
    for (std::size_t i = 0; i < L; ++i) {
      net.taken[r][i] += net.cost[p][i] * net.active[k][i];
    }
  }
  for (std::size_t r = 0; r < net.capacity.size(); ++r) {
    for (std::size_t i = 0; i < L; ++i) {
      const double taken = net.taken[r][i];
      const double common = net.free[r][i] / taken;
      least[i] = std::min(least[i], taken > 0 ? common : kEndless);
    }
  }
  return least;
}

// Lets the streams of positive weight (eager), or those of none, grow together until each has met its demand or a full
// resource.
template <std::size_t L>
void grow(const Network<L>& net, bool eager) {
  for (std::size_t round = 0; round < net.demand.size() && look(net, eager); ++round) {
    const Lanes<L> by = step(net);
    for (std::size_t k = 0; k < net.demand.size(); ++k) {
      for (std::size_t i = 0; i < L; ++i) {
        net.rate[k][i] += net.active[k][i] * (by[i] < kEndless ? by[i] : 0.0);
      }
    }
  }
}

// The floors, less where a resource cannot hold them all.
template <std::size_t L>
void guarantee(const Network<L>& net) {
  std::fill(net.taken.begin(), net.taken.end(), Lanes<L>{});
  for (std::size_t p = 0; p < net.passages.size(); ++p) {
    const auto [k, r] = net.passages[p];
    for (std::size_t i = 0; i < L; ++i) {
      net.taken[r][i] += net.cost[p][i] * net.floor[k][i];
    }
  }
  std::fill(net.active.begin(), net.active.end(), [] {
    Lanes<L> all;
    all.fill(1.0);
    return all;
  }());
  for (std::size_t p = 0; p < net.passages.size(); ++p) {
    const auto [k, r] = net.passages[p];
    for (std::size_t i = 0; i < L; ++i) {
      const double wanted = net.taken[r][i];
      const double part = net.capacity[r][i] / wanted;
      const bool less = wanted > net.capacity[r][i] && net.cost[p][i] > 0;
      net.active[k][i] = std::min(net.active[k][i], less ? part : 1.0);
    }
  }
  for (std::size_t k = 0; k < net.demand.size(); ++k) {
    for (std::size_t i = 0; i < L; ++i) {
      net.rate[k][i] = net.floor[k][i] * net.active[k][i];
    }
  }
}

}  // namespace filling

// Fills net.rate.
template <std::size_t L>
void fill(const Network<L>& net) {
  filling::guarantee(net);
  filling::grow(net, true);
  if (std::any_of(net.weight.begin(), net.weight.end(), [](double weight) { return !(weight > 0); })) {
    filling::grow(net, false);
  }
}

}  // namespace elbowroom::predict
