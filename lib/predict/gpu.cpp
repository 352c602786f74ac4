// The C interface for cases on an accelerator: checks them, and makes intervals of what the law says.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "c_interface.hpp"
#include "elbowroom/predict.h"
#include "gpu_file.hpp"
#include "spread.hpp"

struct elbow_predict_gpu_model {
  elbowroom::predict::GpuPart part;
};

namespace elbowroom::predict {
namespace {

constexpr double kUnknownDiscrepancy = 0.3;

bool is_link(int direction) { return direction >= ELBOW_PREDICT_GPU_H2D && direction <= ELBOW_PREDICT_GPU_BOTH; }

bool holds_sms(int mover) { return mover != ELBOW_PREDICT_GPU_COPY; }

// EINVAL for a case that no such accelerator can have.
void check(const GpuPart& part, const GpuCase& at, const ProductShape& shape) {
  const auto refuse_case = [](const std::string& sentence) { throw Refusal(EINVAL, sentence); };
  if (at.victim < 0 || at.victim >= static_cast<int>(kGpuVictims.size())) {
    refuse_case("victim " + std::to_string(at.victim) +
                ": is none; give one of ELBOW_PREDICT_GPU_GEMM, _TRIAD, _CHAIN");
  }
  if (at.mover < 0 || at.mover >= static_cast<int>(kGpuMovers.size())) {
    refuse_case("mover " + std::to_string(at.mover) +
                ": is none; give ELBOW_PREDICT_GPU_COPY, _SM_COPY, _SM_IDLE or _SM_TARGET");
  }
  const bool right = at.mover == ELBOW_PREDICT_GPU_COPY ? is_link(at.direction) || at.direction == ELBOW_PREDICT_GPU_D2D
                     : at.mover == ELBOW_PREDICT_GPU_SM_COPY
                         ? at.direction == ELBOW_PREDICT_GPU_HBM || at.direction == ELBOW_PREDICT_GPU_HOST
                         : at.direction == ELBOW_PREDICT_GPU_NOWHERE;
  if (!right) {
    refuse_case("direction " + std::to_string(at.direction) + ": that mover has no such direction");
  }
  if (holds_sms(at.mover) && (at.sms < 1 || at.sms >= part.sms)) {
    refuse_case("sms " + std::to_string(at.sms) + ": the accelerator has " + std::to_string(part.sms) +
                " SMs; ask for 1 to " + std::to_string(part.sms - 1));
  }
  if (!holds_sms(at.mover) && at.sms != 0) {
    refuse_case("sms " + std::to_string(at.sms) + ": copy engines hold none; give 0");
  }
  if (!(at.pace >= 0) || !std::isfinite(at.pace)) {
    refuse_case("pace: is no bandwidth; give MB/s, 0 for as fast as it can");
  }
  if (at.node < -1) {
    refuse_case("node " + std::to_string(at.node) + ": is no NUMA node");
  }
  const bool given = shape != ProductShape{};
  if (given && (at.victim != ELBOW_PREDICT_GPU_GEMM || *std::min_element(shape.begin(), shape.end()) < 1)) {
    refuse_case("shape: give m, n and k of a product, each at least 1, or zeros");
  }
}

double bytes_per_product(const ProductShape& shape) {
  const auto [m, n, k] = std::array<double, 3>{static_cast<double>(shape[0]), static_cast<double>(shape[1]),
                                               static_cast<double>(shape[2])};
  return (m * k + k * n + m * n) / (m * n * k);
}

double tiles_across(int length, int tile) { return std::floor((static_cast<double>(length) + tile - 1) / tile); }

// The victim of a case: the measured one, or the largest one scaled to the shape. ENOTSUP for one that was not measured.
GpuVictim victim_of(const GpuPart& part, const GpuCase& at) {
  const GpuVictim* like = nullptr;
  for (const GpuVictim& item : part.victims) {
    if (item.victim != at.victim) {
      continue;
    }
    if (item.shape == at.shape) {
      return item;
    }
    const bool larger =
        like != nullptr && (item.tiles > like->tiles || (item.tiles == like->tiles && item.traffic > like->traffic));
    like = like == nullptr || larger ? &item : like;
  }
  if (like == nullptr) {
    throw Refusal(ENOTSUP, std::string("victim ") + kGpuVictims[static_cast<std::size_t>(at.victim)] +
                               ": was not measured on " + part.device);
  }
  GpuVictim scaled = *like;
  if (at.shape != ProductShape{}) {
    const bool known = like->shape != ProductShape{};
    scaled.traffic = known ? like->traffic * bytes_per_product(at.shape) / bytes_per_product(like->shape) : 0.0;
    scaled.tiles =
        like->tile[0] > 0 ? tiles_across(at.shape[0], like->tile[0]) * tiles_across(at.shape[1], like->tile[1]) : 0.0;
  }
  return scaled;
}

// The case as it was measured, where it leaves open what only one value is known of, and its order of starts, which
// matters only where SMs are held.
GpuCase resolved(const GpuPart& part, GpuCase at) {
  std::size_t shapes = 0;
  ProductShape only{};
  for (const GpuVictim& item : part.victims) {
    if (item.victim == at.victim) {
      shapes += 1;
      only = item.shape;
    }
  }
  if (at.shape == ProductShape{} && shapes == 1) {
    at.shape = only;
  }
  if (at.mover == ELBOW_PREDICT_GPU_COPY && is_link(at.direction)) {
    std::size_t nodes = 0;
    int node = -1;
    for (const GpuLink& link : part.links) {
      if (link.direction == kGpuDirections[static_cast<std::size_t>(at.direction)]) {
        nodes += 1;
        node = link.node;
      }
    }
    at.node = at.node == -1 && nodes == 1 ? node : at.node;
  }
  at.victim_first = at.victim_first && (at.mover == ELBOW_PREDICT_GPU_SM_COPY || at.mover == ELBOW_PREDICT_GPU_SM_IDLE);
  return at;
}

std::size_t link_of(const GpuPart& part, const GpuCase& at) {
  const std::string direction = kGpuDirections[static_cast<std::size_t>(at.direction)];
  for (const GpuLink& link : part.links) {
    if (link.direction == direction && link.node == at.node) {
      return link.row;
    }
  }
  throw Refusal(ENOTSUP, "node " + std::to_string(at.node) + ": copies " + direction +
                             " were not measured with a buffer there; measure with: elbowroom run gpu");
}

GpuSituation situation_of(const GpuPart& part, const GpuCase& at, const GpuVictim& victim) {
  GpuSituation result;
  result.victim = static_cast<GpuVictimKind>(at.victim);
  switch (at.mover) {
    case ELBOW_PREDICT_GPU_COPY:
      result.mover = is_link(at.direction) ? GpuMoverKind::link : GpuMoverKind::engine;
      break;
    case ELBOW_PREDICT_GPU_SM_COPY:
      result.mover = at.direction == ELBOW_PREDICT_GPU_HBM ? GpuMoverKind::sm_hbm : GpuMoverKind::sm_host;
      break;
    case ELBOW_PREDICT_GPU_SM_IDLE: result.mover = GpuMoverKind::idle; break;
    default: result.mover = GpuMoverKind::plan;
  }
  result.sms = part.sms;
  result.count = at.sms;
  result.late = at.victim_first;
  result.tiles = victim.tiles;
  result.traffic = victim.traffic;
  result.pace = at.pace > 0 ? at.pace : std::numeric_limits<double>::infinity();
  result.link = result.mover == GpuMoverKind::link ? link_of(part, at) : 0;
  return result;
}

const GpuFamily* find_family(const GpuPart& part, const std::string& name) {
  const auto found = std::find_if(part.families.begin(), part.families.end(),
                                  [&](const GpuFamily& item) { return item.name == name; });
  return found == part.families.end() ? nullptr : &*found;
}

// Of a family that was not measured the largest one of those with the same mover, else of all.
double discrepancy_of(const GpuPart& part, const GpuCase& at, const GpuFamily* family) {
  if (family != nullptr) {
    return family->discrepancy;
  }
  const std::string mover = std::string("/") + kGpuMovers[static_cast<std::size_t>(at.mover)];
  double alike = -1;
  double any = -1;
  for (const GpuFamily& item : part.families) {
    const std::string rest = item.name.substr(std::min(item.name.find('/'), item.name.size()));
    any = std::max(any, item.discrepancy);
    if (rest == mover || rest.rfind(mover + "/", 0) == 0) {
      alike = std::max(alike, item.discrepancy);
    }
  }
  return alike >= 0 ? alike : any >= 0 ? any : kUnknownDiscrepancy;
}

unsigned flags_of(const GpuPart& part, const GpuCase& at, const GpuFamily* family, bool measured) {
  unsigned flags = 0;
  const auto raise = [&](bool holds, unsigned flag) { flags |= holds ? flag : 0U; };
  raise(measured, ELBOW_PREDICT_GPU_MEASURED);
  if (family == nullptr) {
    raise(true, ELBOW_PREDICT_GPU_FAMILY_UNKNOWN);
  } else if (holds_sms(at.mover) && !measured && (at.sms < family->sms_low || at.sms > family->sms_high)) {
    raise(true, ELBOW_PREDICT_EXTRAPOLATED);
  }
  const auto same = [&](const GpuVictim& item) { return item.shape == at.shape; };
  if (at.shape != ProductShape{} && std::none_of(part.victims.begin(), part.victims.end(), same)) {
    raise(true, ELBOW_PREDICT_GPU_SHAPE_UNKNOWN);
  }
  raise(at.victim_first && !part.order_known, ELBOW_PREDICT_GPU_ORDER_UNKNOWN);
  raise(part.is_virtual, ELBOW_PREDICT_VIRTUAL);
  return flags;
}

elbow_predict_gpu_result predict(const GpuPart& part, const elbow_predict_gpu_case& asked) {
  const ProductShape shape = {asked.shape[0], asked.shape[1], asked.shape[2]};
  GpuCase at{asked.victim, asked.mover, asked.direction, asked.sms, asked.node, asked.victim_first != 0,
             asked.pace,   shape};
  check(part, at, shape);
  at = resolved(part, at);
  const GpuVictim victim = victim_of(part, at);
  const GpuSituation situation = situation_of(part, at, victim);
  const GpuRates best = gpu_rates(part.vectors.front(), situation);
  Spread kept;
  Spread alone;
  Spread together;
  Spread share;
  for (std::size_t row = 1; row < part.vectors.size(); ++row) {
    const GpuRates drawn = gpu_rates(part.vectors[row], situation);
    kept.add(drawn.kept);
    alone.add(drawn.mover_alone);
    together.add(drawn.mover_together);
    share.add(drawn.mover_alone > 0 ? drawn.mover_together / drawn.mover_alone : 0.0);
  }
  const GpuFamily* family = find_family(part, family_of(at));
  const auto known =
      std::find_if(part.measured.begin(), part.measured.end(), [&](const GpuMeasured& item) { return item.at == at; });
  const bool measured = known != part.measured.end();
  elbow_predict_gpu_result result{};
  result.kept =
      measured ? Spread().around(known->kept, known->spread) : kept.around(best.kept, discrepancy_of(part, at, family));
  result.rate = {result.kept.value * victim.alone, result.kept.low * victim.alone, result.kept.high * victim.alone};
  if (best.mover_alone > 0) {
    result.mover_alone = alone.around(best.mover_alone, part.mover_discrepancy);
    result.mover_together = together.around(best.mover_together, part.mover_discrepancy);
    result.mover_kept = share.around(best.mover_together / best.mover_alone, 0.0);
  }
  for (const elbow_predict_interval& item : {result.kept, result.rate, result.mover_alone, result.mover_together}) {
    if (!std::isfinite(item.value) || !std::isfinite(item.low) || !std::isfinite(item.high)) {
      throw Refusal(EDOM, "the model of " + part.device + " has no bandwidth for that case; fit it again");
    }
  }
  result.flags = flags_of(part, at, family, measured);
  return result;
}

}  // namespace
}  // namespace elbowroom::predict

using elbowroom::c_interface::check_size;
using elbowroom::c_interface::give;
using elbowroom::c_interface::guard;
using elbowroom::c_interface::refuse_null;
using elbowroom::c_interface::taken;

extern "C" {

elbow_predict_gpu_model* elbow_predict_gpu_load(const char* path) {
  using namespace elbowroom::predict;
  return guard([&] {
    refuse_null(path, "path");
    const std::string text = read_text(path);
    try {
      return new elbow_predict_gpu_model{read_gpu(text)};
    } catch (const Refusal& error) {
      throw Refusal(error.code, std::string(path) + ": " + error.what());
    }
  });
}

elbow_predict_gpu_model* elbow_predict_gpu_parse(const char* text, size_t length) {
  return guard([&] {
    refuse_null(text, "text");
    return new elbow_predict_gpu_model{elbowroom::predict::read_gpu({text, length})};
  });
}

void elbow_predict_gpu_free(elbow_predict_gpu_model* gpu) { delete gpu; }

int elbow_predict_gpu_sms(const elbow_predict_gpu_model* gpu) {
  return guard([&] {
    refuse_null(gpu, "gpu");
    return gpu->part.sms;
  });
}

int elbow_predict_gpu(const elbow_predict_gpu_model* gpu, const elbow_predict_gpu_case* asked,
                      elbow_predict_gpu_result* prediction) {
  return guard([&] {
    refuse_null(gpu, "gpu");
    check_size(prediction, "prediction");
    give(elbowroom::predict::predict(gpu->part, taken(asked, "case")), prediction);
  });
}

}  // extern "C"
