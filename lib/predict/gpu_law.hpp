// The law of an accelerator, as src/elbowroom/models/gpu/law.py has it, for one set of parameters and one case.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace elbowroom::predict {

// In the order of kGpuNames; behind them a file has one bandwidth for each link.
enum GpuParameter : std::size_t {
  gpu_hbm,
  gpu_issue,
  gpu_corner,
  gpu_traffic,
  gpu_quant,
  gpu_hold,
  gpu_late,
  gpu_engine,
  gpu_sm_hbm,
  gpu_sm_host,
  gpu_store,
  gpu_engine_weight,
  gpu_sm_weight,
  gpu_stall_gemm,
  gpu_stall_triad,
  gpu_stall_chain,
  gpu_stall_power,
  gpu_launch_engine,
  gpu_launch_sm,
  gpu_parameter_count
};

constexpr std::array<const char*, gpu_parameter_count> kGpuNames = {
    "hbm",         "issue",       "corner",      "traffic",       "quant",         "hold",      "late",
    "engine",      "sm_hbm",      "sm_host",     "store",         "engine_weight", "sm_weight", "stall_gemm",
    "stall_triad", "stall_chain", "stall_power", "launch_engine", "launch_sm"};

enum class GpuVictimKind { gemm, triad, chain };

// What limits the mover alone; `idle` and `plan` move nothing.
enum class GpuMoverKind { link, engine, sm_hbm, sm_host, idle, plan };

// `sms` of the device, `count` of them held or left out; `late`: the victim started first; `tiles` of its product (0: not
// known), `traffic` and `pace` (infinite: none) in MB/s; `link`: which row of parameters has its bandwidth.
struct GpuSituation {
  GpuVictimKind victim = GpuVictimKind::gemm;
  GpuMoverKind mover = GpuMoverKind::idle;
  double sms = 0;
  double count = 0;
  bool late = false;
  double tiles = 0;
  double traffic = 0;
  double pace = 0;
  std::size_t link = 0;
};

// What the victim keeps, and the mover's MB/s, 0 where nothing moves.
struct GpuRates {
  double kept = 0;
  double mover_alone = 0;
  double mover_together = 0;
};

GpuRates gpu_rates(std::span<const double> parameters, const GpuSituation& at);

}  // namespace elbowroom::predict
