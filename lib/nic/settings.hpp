// What the environment says of the emulated NIC (docs/reference/nic.md).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "nic/fluid.hpp"

namespace elbowroom::nic {

struct Settings {
  std::string name;  // of the shared memory; empty: this process is not limited
  Nic nic;
  int rank = 0;
  int node = 0;             // an emulated one
  std::string log;          // folder; empty: nothing is written
  std::int64_t nap_ns = 0;  // a process that polls in vain sleeps so long
  std::string error;        // a sentence: why the settings are not valid
};

// The value of a variable of the environment, or nullptr.
using Environment = std::function<const char*(const char*)>;

// Off where ELBOW_NIC_NAME is not set or empty, or the process is no rank.
Settings read_settings(const Environment& environment);

}  // namespace elbowroom::nic
