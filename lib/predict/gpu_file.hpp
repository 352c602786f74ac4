// `gpu` of a model file: the model of an accelerator, checked while it is read.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_law.hpp"

namespace elbowroom::predict {

// The words of cases, in the order of the enumerations of predict.h.
constexpr std::array<const char*, 3> kGpuVictims = {"gemm", "triad", "chain"};
constexpr std::array<const char*, 4> kGpuMovers = {"copy", "sm_copy", "sm_idle", "sm_target"};
constexpr std::array<const char*, 7> kGpuDirections = {"", "h2d", "d2h", "both", "d2d", "hbm", "host"};

using ProductShape = std::array<int, 3>;

// A case as numbers of these words; `shape` of zeros: not given.
struct GpuCase {
  int victim = 0;
  int mover = 0;
  int direction = 0;
  int sms = 0;
  int node = -1;
  bool victim_first = false;
  double pace = 0;
  ProductShape shape{};

  bool operator==(const GpuCase&) const = default;
};

struct GpuVictim {
  int victim = 0;
  ProductShape shape{};
  double alone = 0;
  double tiles = 0;
  std::array<int, 2> tile{};
  double traffic = 0;
};

// A measured case: what the victim keeps with its relative standard error.
struct GpuMeasured {
  GpuCase at;
  double kept = 0;
  double spread = 0;
};

// How far off the model is for cases of one family, and the measured numbers of SMs.
struct GpuFamily {
  std::string name;
  double discrepancy = 0;
  int sms_low = 0;
  int sms_high = 0;
};

// A copy between host and device: its bandwidth is the parameter at `row`.
struct GpuLink {
  std::string direction;
  int node = -1;
  std::size_t row = 0;
};

struct GpuPart {
  std::string device;
  int sms = 0;
  std::vector<std::vector<double>> vectors;
  std::vector<GpuLink> links;
  std::vector<GpuVictim> victims;
  std::vector<GpuMeasured> measured;
  std::vector<GpuFamily> families;
  double mover_discrepancy = 0;
  bool order_known = false;
  bool is_virtual = false;
};

// Throws Refusal: EBADMSG for a damaged file, ENOTSUP for a newer one and for one without an accelerator.
GpuPart read_gpu(std::string_view text);

// VICTIM/MOVER/DIRECTION, as Python names families.
std::string family_of(const GpuCase& at);

}  // namespace elbowroom::predict
