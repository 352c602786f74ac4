// The parts of the machine's state that are read below a root, for tests.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/system_files.hpp"

namespace elbowroom {

// {"unknown": reason}
nlohmann::json unknown(const std::string& reason);

nlohmann::json load_state(const SystemRoots& roots);       // load, running_tasks, tasks, steal_s
nlohmann::json processor_state(const SystemRoots& roots);  // cpu_model … turbo, smt, governor, frequencies
nlohmann::json memory_state(const SystemRoots& roots);     // memory_kernel, huge pages, NUMA balancing
nlohmann::json cgroup_state(const SystemRoots& roots);
nlohmann::json nic_state(const SystemRoots& roots);       // one object per interface, loopback left out
nlohmann::json platform_state(const SystemRoots& roots);  // kernel, hypervisor, iommu, clocksource, autogroup …

}  // namespace elbowroom
