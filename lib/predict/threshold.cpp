#include "threshold.hpp"

#include <algorithm>
#include <cmath>

namespace elbowroom::predict {
namespace {

// Relative difference below which the two modes say the same.
constexpr double kSame = 1e-9;

// Computations alone, both streams together; data on one node.
struct Bandwidths {
  double comp_alone;
  double comp_together;
  double comm_together;
};

// T(n), equation 6.1.
double total(const Parameters& p, int n, int cores, bool faithful) {
  if (!faithful && p.n_par_max > p.n_seq_max) {
    const double last = p.t_par_max2 - p.delta_r * (cores - p.n_seq_max);
    const double fall = (p.t_par_max - last) / std::max(cores - p.n_par_max, 1);
    return p.t_par_max - fall * std::max(n - p.n_par_max, 0);
  }
  if (n <= p.n_par_max) {
    return p.t_par_max;
  }
  if (n <= p.n_seq_max) {
    return p.t_par_max - p.delta_l * (n - p.n_par_max);
  }
  return p.t_par_max2 - p.delta_r * (n - p.n_seq_max);
}

// alpha(n), equation 6.5: from what was kept at the last count that fits (`last`, `left_over` there) down to alpha.
double kept(const Parameters& p, int n, int last, double left_over) {
  if (n >= p.n_seq_max || p.n_seq_max - p.n_par_max <= 1) {
    return p.alpha;
  }
  const double there = last > 0 ? left_over / p.b_comm_seq : 1.0;
  return there - (there - p.alpha) / (p.n_seq_max - last) * (n - last);
}

// Equations 6.2-6.6 for n = 0 to cores.
std::vector<Bandwidths> bandwidths(const Parameters& p, int cores, bool faithful) {
  std::vector<Bandwidths> result;
  result.reserve(cores + 1);
  result.push_back({0.0, 0.0, p.b_comm_seq});  // without computing cores there is nothing to share
  int last = 0;
  double left_over_there = 0.0;
  for (int n = 1; n <= cores; ++n) {
    const double capacity = total(p, n, cores, faithful);
    const double demand = n * p.b_comp_seq;
    double alone = std::min(std::min(demand, capacity), p.t_seq_max);
    if (!faithful) {
      const double own_loss = std::max(p.delta_r, 0.0) * std::max(n - p.n_seq_max, 0);
      alone = std::max(std::min(demand, p.t_seq_max - own_loss), 0.0);
    }
    const double wanted = faithful ? demand : alone;
    const bool fits = wanted + p.alpha * p.b_comm_seq < capacity;
    double comm = std::min(capacity - wanted, p.b_comm_seq);
    double comp = wanted;
    if (fits) {
      last = n;
      left_over_there = comm;
    } else {
      comm = kept(p, n, last, left_over_there) * p.b_comm_seq;
      comp = capacity - comm;
    }
    if (!faithful) {
      comm = std::min(std::max(comm, 0.0), p.b_comm_seq);
      comp = std::min(std::max(capacity - comm, 0.0), alone);
    }
    result.push_back({alone, comp, comm});
  }
  return result;
}

std::vector<Streams> curve(const ThresholdPart& model, const Sides& sides, int cores, bool faithful) {
  const std::optional<Parameters>& comp_side = sides.comp_local ? model.local : model.remote;
  const std::optional<Parameters>& comm_side = sides.comm_local ? model.local : model.remote;
  if (!comp_side || !comm_side || (faithful && !sides.same_node && !model.local)) {
    return {};
  }
  const std::vector<Bandwidths> comp = bandwidths(*comp_side, cores, faithful);
  std::vector<Bandwidths> mixed;
  if (faithful && !sides.same_node) {
    // Equation 6.7, second case: the local parameters with the communications' own bandwidth alone.
    Parameters parameters = *model.local;
    parameters.b_comm_seq = comm_side->b_comm_seq;
    mixed = bandwidths(parameters, cores, true);
  }
  std::vector<Streams> result;
  for (int n = 0; n <= cores; ++n) {
    double comp_together = comp[n].comp_together;
    double comm_together = comp[n].comm_together;
    if (!sides.same_node) {
      comp_together = comp[n].comp_alone;
      comm_together = mixed.empty() ? comm_side->b_comm_seq : mixed[n].comm_together;
    }
    result.push_back({comp[n].comp_alone, comm_side->b_comm_seq, comp_together, comm_together});
  }
  return result;
}

bool differ(const Streams& ours, const Streams& published) {
  for (int k = 0; k < kStreamCount; ++k) {
    if (std::abs(ours[k] - published[k]) > kSame * std::abs(published[k])) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<ThresholdAnswer> threshold_curve(const ThresholdPart& model, const Sides& sides, int cores) {
  const std::vector<Streams> ours = curve(model, sides, cores, false);
  const std::vector<Streams> published = curve(model, sides, cores, true);
  std::vector<ThresholdAnswer> result;
  for (std::size_t n = 0; n < ours.size(); ++n) {
    // Where the published equations cannot answer, ours says something else.
    result.push_back({ours[n], published.empty() || differ(ours[n], published[n])});
  }
  return result;
}

}  // namespace elbowroom::predict
