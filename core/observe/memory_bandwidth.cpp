#include "observe/memory_bandwidth.hpp"

namespace elbowroom {

std::optional<MemoryBytes> memory_bytes(const SystemRoots& roots) {
  const auto base = roots.sys + "/fs/resctrl/mon_data";
  MemoryBytes sum;
  bool result = false;
  for (const auto& name : list_directory(base)) {
    const auto total = read_number(base + "/" + name + "/mbm_total_bytes");
    const auto local = read_number(base + "/" + name + "/mbm_local_bytes");
    // A cache whose counter is "Unavailable" would make the sum a lie.
    if (!total || !local || *total < 0 || *local < 0) {
      return std::nullopt;
    }
    sum.total += static_cast<std::uint64_t>(*total);
    sum.local += static_cast<std::uint64_t>(*local);
    result = true;
  }
  return result ? std::optional(sum) : std::nullopt;
}

std::string bandwidth_refusal(const SystemRoots& roots) {
  if (list_directory(roots.sys + "/fs/resctrl").empty()) {
    return "resctrl is not mounted (as root: mount -t resctrl resctrl /sys/fs/resctrl)";
  }
  return memory_bytes(roots) ? "" : "resctrl does not monitor memory bandwidth here";
}

}  // namespace elbowroom
