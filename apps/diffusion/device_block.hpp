// A block's cells on an accelerator. What others need of them, and what they need of others, passes through host memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diffusion/block.hpp"
#include "gpu/device.hpp"

namespace elbowroom::diffusion {

// Bytes on the device for each slot: its row, and two copies of its value.
inline constexpr double kDeviceCellBytes = static_cast<double>(sizeof(Slice)) / kSlice + 2 * sizeof(double);

class DeviceBlock {
 public:
  // Copies a block that was filled and begun; `libraries`: folders of NVRTC. Throws GpuError, and Unavailable where no
  // compiler knows the device.
  DeviceBlock(const gpu::Context& context, const std::vector<std::string>& libraries, const Block& block);

  // Starts the separator of a step, behind it its copy to separator_values(), and behind that the interior.
  void start(std::int64_t step);
  void wait_for_separator() const { halo_.synchronize(); }
  const double* separator_values() const { return static_cast<const double*>(sent_.data()); }  // by slot
  double* ghost_values() const { return static_cast<double*>(received_.data()); }              // in the ghosts' order
  // Copies ghost_values() to where the next step reads them.
  void send_ghosts(std::int64_t step);
  void finish() const;

  // Copies the cells' values after `step` steps to the block's own memory.
  void fetch(std::int64_t step, const Block& block) const;

 private:
  gpu::DevicePointer field(std::int64_t step) const;
  void sweep(const gpu::Stream& stream, std::int64_t step, std::size_t first, std::size_t last) const;

  const gpu::Context& context_;
  gpu::Module module_;
  gpu::FunctionHandle function_;
  std::size_t separator_;  // slices
  std::size_t slices_;
  std::size_t own_;     // doubles
  std::size_t ghosts_;  // doubles
  gpu::DeviceMemory rows_;
  gpu::DeviceMemory fields_;
  gpu::PinnedMemory sent_;
  gpu::PinnedMemory received_;
  gpu::Stream halo_;      // the separator and its copies
  gpu::Stream interior_;  // beside them
};

}  // namespace elbowroom::diffusion
