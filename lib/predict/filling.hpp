// Sharing capacities: streams with a demand, a floor and a weight fill the resources they pass. The law is that of
// src/elbowroom/model/filling.py, step by step.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace elbowroom::predict {

template <std::size_t K, std::size_t R>
struct Network {
  std::array<double, K> demand{};
  std::array<double, K> floor{};
  std::array<double, K> weight{};
  std::array<double, R> capacity{};
  std::array<std::array<double, K>, R> cost{};  // what a unit of the stream takes of the resource; 0: passes by
};

namespace filling {

constexpr double exhausted = 1e-12;  // relative: what is less than this from being full is full

template <std::size_t K, std::size_t R>
double load(const Network<K, R>& net, std::size_t r, const std::array<double, K>& of) {
  double sum = 0;
  for (std::size_t k = 0; k < K; ++k) {
    sum += net.cost[r][k] * of[k];
  }
  return sum;
}

// Lets the streams of positive weight grow together until each has met its demand or a full resource.
template <std::size_t K, std::size_t R>
void grow(const Network<K, R>& net, const std::array<double, K>& weight, std::array<double, K>& rate) {
  for (std::size_t round = 0; round < K; ++round) {
    std::array<double, R> free{};
    std::array<bool, R> full{};
    for (std::size_t r = 0; r < R; ++r) {
      free[r] = std::max(net.capacity[r] - load(net, r, rate), 0.0);
      full[r] = free[r] <= exhausted * (std::isfinite(net.capacity[r]) ? net.capacity[r] : 0.0);
    }
    std::array<double, K> active{};
    double step = std::numeric_limits<double>::infinity();
    bool any = false;
    for (std::size_t k = 0; k < K; ++k) {
      bool stopped = net.demand[k] - rate[k] <= exhausted * net.demand[k];
      for (std::size_t r = 0; r < R; ++r) {
        stopped = stopped || (net.cost[r][k] > 0 && full[r]);
      }
      active[k] = stopped ? 0.0 : weight[k];
      if (active[k] > 0) {
        any = true;
        step = std::min(step, (net.demand[k] - rate[k]) / active[k]);
      }
    }
    if (!any) {
      return;
    }
    for (std::size_t r = 0; r < R; ++r) {
      const double sum = load(net, r, active);
      if (sum > 0) {
        step = std::min(step, free[r] / sum);
      }
    }
    if (std::isfinite(step)) {
      for (std::size_t k = 0; k < K; ++k) {
        rate[k] += active[k] * step;
      }
    }
  }
}

}  // namespace filling

// The rate of each stream.
template <std::size_t K, std::size_t R>
std::array<double, K> fill(const Network<K, R>& net) {
  std::array<double, K> least{};
  least.fill(1.0);
  for (std::size_t r = 0; r < R; ++r) {
    const double wanted = filling::load(net, r, net.floor);
    const double kept = wanted > net.capacity[r] ? net.capacity[r] / wanted : 1.0;
    for (std::size_t k = 0; k < K; ++k) {
      if (net.cost[r][k] > 0) {
        least[k] = std::min(least[k], kept);
      }
    }
  }
  std::array<double, K> rate{};
  std::array<double, K> eager{};
  std::array<double, K> patient{};
  bool any_patient = false;
  for (std::size_t k = 0; k < K; ++k) {
    rate[k] = net.floor[k] * least[k];
    eager[k] = net.weight[k] > 0 ? net.weight[k] : 0.0;
    patient[k] = net.weight[k] > 0 ? 0.0 : 1.0;
    any_patient = any_patient || patient[k] > 0;
  }
  filling::grow(net, eager, rate);
  if (any_patient) {
    filling::grow(net, patient, rate);
  }
  return rate;
}

}  // namespace elbowroom::predict
