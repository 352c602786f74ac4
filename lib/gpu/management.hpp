// NVML (libnvidia-ml.so.1), which comes with the driver: link, clocks and processes of a device. Nothing is ever set.
// Its calls are those of NVIDIA's NVML reference (docs.nvidia.com/deploy/nvml-api).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu/library.hpp"

namespace elbowroom::gpu {

struct ManagementFacts {
  std::string driver;  // "570.86.15"; empty unknown
  std::optional<unsigned> link_generation, link_generation_max, link_width, link_width_max;
  std::optional<unsigned> sm_mhz, sm_mhz_max, memory_mhz, memory_mhz_max;
  std::optional<std::vector<unsigned>> processes;  // ids of other processes with a context on the device
};

class Management {
 public:
  Management();  // libnvidia-ml.so.1, or the file that ELBOWROOM_NVML names; Unavailable where there is none
  ~Management();
  Management(const Management&) = delete;
  Management& operator=(const Management&) = delete;

  // Values that NVML does not have stay empty. Throws Unavailable where it does not know the device.
  ManagementFacts facts(const std::string& pci) const;
  std::optional<unsigned> sm_mhz(const std::string& pci) const;  // the clock now

 private:
  Library library_;
  void* device(const std::string& pci) const;
};

}  // namespace elbowroom::gpu
