// Steps of one process whose cells are shared by cores and an accelerator (Langguth et al. 2018, section VI).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "diffusion/mesh.hpp"

namespace elbowroom::diffusion {

struct SplitRequest {
  double w = 0.5;  // share of the cells on the accelerator
  std::int64_t steps = 20;
  std::vector<int> cores;              // that compute; one thread each
  int device = 0;                      // its number
  std::vector<std::string> libraries;  // folders of NVRTC, besides the system's
};

// {"cells", "w", "host_cells", "device_cells", "halo_bytes", "device", "steps", "step_s": [...], "valid", "checksum"}.
// Each step computes both separators, passes them through host memory and computes both interiors meanwhile; `valid`: the
// last step follows from the one before it on both sides. Throws RequestError: what was asked, no driver, device or
// compiler (kind machine), and cells that the device's memory does not hold, with the largest w that it does.
nlohmann::json run_split(const Mesh& mesh, const SplitRequest& request);

}  // namespace elbowroom::diffusion
