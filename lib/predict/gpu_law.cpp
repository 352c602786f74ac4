#include "gpu_law.hpp"

#include <algorithm>
#include <cmath>

namespace elbowroom::predict {
namespace {

constexpr double kLeastRoom = 1e-3;  // part of HBM that is left to the victim at least
constexpr double kRamp = 10.0;       // the last wave and full queues take effect at a tenth
constexpr double kLeastWaiting = 1e-12;

using Row = std::span<const double>;

bool holds(GpuMoverKind mover) {
  return mover == GpuMoverKind::sm_hbm || mover == GpuMoverKind::sm_host || mover == GpuMoverKind::idle;
}

double waves(Row p, double tiles, double sms) {
  if (tiles <= 0) {
    return 1 / sms;
  }
  const double rounds = tiles / sms;
  const double below = std::floor(rounds);
  const double whole = below + std::min(kRamp * (rounds - below), 1.0);
  return p[gpu_quant] * whole + (1 - p[gpu_quant]) * rounds;
}

// q of the law: what its SMs leave to the victim.
double sms_left(Row p, const GpuSituation& at) {
  const double lost = holds(at.mover)                  ? p[gpu_hold] * at.count * (at.late ? p[gpu_late] : 1.0)
                      : at.mover == GpuMoverKind::plan ? at.count
                                                       : 0.0;
  return waves(p, at.tiles, at.sms) / waves(p, at.tiles, std::max(at.sms - lost, 1.0));
}

double mover_alone(Row p, const GpuSituation& at) {
  switch (at.mover) {
    case GpuMoverKind::link: return std::min(at.pace, p[at.link]);
    case GpuMoverKind::engine: return std::min(at.pace, p[gpu_engine]);
    case GpuMoverKind::sm_hbm: return std::min({at.pace, at.count * p[gpu_sm_hbm], p[gpu_hbm] / 2});
    case GpuMoverKind::sm_host: return std::min({at.pace, at.count * p[gpu_sm_host], p[gpu_store]});
    default: return 0;
  }
}

// B of the law: how much longer everything takes beside stores that their link cannot take.
double stall(Row p, const GpuSituation& at) {
  if (at.mover != GpuMoverKind::sm_host) {
    return 1;
  }
  const double beyond = std::max(std::min(at.pace, at.count * p[gpu_sm_host]) / p[gpu_store] - 1, 0.0);
  const double factor = at.victim == GpuVictimKind::gemm    ? p[gpu_stall_gemm]
                        : at.victim == GpuVictimKind::triad ? p[gpu_stall_triad]
                                                            : p[gpu_stall_chain];
  const double waiting = at.count * std::min(kRamp * beyond, 1.0);
  return waiting > 0 ? 1 + factor * std::pow(std::max(waiting, kLeastWaiting), p[gpu_stall_power]) : 1;
}

double asked_of(Row p, const GpuSituation& at) {
  switch (at.victim) {
    case GpuVictimKind::triad: return p[gpu_issue];
    case GpuVictimKind::gemm: return p[gpu_traffic] * at.traffic / p[gpu_hbm];
    default: return 0;
  }
}

}  // namespace

GpuRates gpu_rates(Row p, const GpuSituation& at) {
  const double corner = p[gpu_corner];
  const double alone = mover_alone(p, at);
  const double asked = asked_of(p, at);
  const double full = std::pow(1 + std::pow(asked, corner), -1 / corner);
  const bool copies = at.mover == GpuMoverKind::sm_hbm || at.mover == GpuMoverKind::sm_host;
  const double weight = copies ? p[gpu_sm_weight] * at.count / std::max(at.sms - at.count, 1.0) : p[gpu_engine_weight];
  const double cost = at.mover == GpuMoverKind::engine || at.mover == GpuMoverKind::sm_hbm ? 2.0 : 1.0;
  const double wanted = cost * alone / p[gpu_hbm];
  const double moved = std::min(wanted, std::max(1 - asked * full, weight / (1 + weight)));
  double kept = 0;
  if (at.victim == GpuVictimKind::chain) {
    const double launch = holds(at.mover)                  ? p[gpu_launch_sm]
                          : at.mover == GpuMoverKind::plan ? 0.0
                                                           : p[gpu_launch_engine];
    kept = 1 / (1 + launch);
  } else {
    const double room = std::max(1 - moved, kLeastRoom);
    kept = std::pow(std::pow(sms_left(p, at), -corner) + std::pow(asked / room, corner), -1 / corner) / full;
  }
  return {kept / stall(p, at), alone, moved * p[gpu_hbm] / cost};
}

}  // namespace elbowroom::predict
