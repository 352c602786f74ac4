// NVML (libnvidia-ml.so.1), which comes with the driver: link, clocks and processes of a device. Nothing is ever set.
// Its calls are those of NVIDIA's NVML reference (docs.nvidia.com/deploy/nvml-api).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu/library.hpp"

namespace elbowroom::gpu {

// What changes under load.
struct DeviceReading {
  std::optional<unsigned> sm_mhz, link_generation, link_width;
  std::optional<double> power_w;
  std::optional<std::vector<std::string>> throttle;  // why clocks are lower than they could be: "power_cap" ...
};

struct ManagementFacts {
  std::string driver;  // "570.86.15"; empty unknown
  DeviceReading now;
  std::optional<unsigned> link_generation_max, link_width_max;
  std::optional<unsigned> sm_mhz_max, memory_mhz, memory_mhz_max;
  std::optional<std::vector<unsigned>> processes;  // ids of other processes with a context on the device
};

// Processes on a device as NVML lists them, by the ids of the host, and what this process knows of itself.
struct ListedProcesses {
  std::vector<unsigned> ids;
  unsigned own_id = 0;
  bool host_ids = true;      // own_id is the host's, too: this process is in no container
  bool own_context = false;  // this process has a context on the device, so that it is listed
};
// The others. Nothing in a container once there is a context: which of them is this process cannot be known.
std::optional<std::vector<unsigned>> others_of(const ListedProcesses& listed);

class Management {
 public:
  Management();  // libnvidia-ml.so.1, or the file that ELBOWROOM_NVML names; Unavailable where there is none
  ~Management();
  Management(const Management&) = delete;
  Management& operator=(const Management&) = delete;

  // Values that NVML does not have stay empty. Both throw Unavailable where it does not know the device. `own_context`:
  // whether this process has a context on the device.
  ManagementFacts facts(const std::string& pci, bool own_context) const;
  DeviceReading reading(const std::string& pci) const;

 private:
  Library library_;
  void* device(const std::string& pci) const;
};

}  // namespace elbowroom::gpu
