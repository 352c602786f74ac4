#include "base/cgroup.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

namespace elbowroom {
namespace {

// A limit as large as half the address space means "none" in version 1.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;

// Controller (or "" for version 2) to the group's path below the mount point, from /proc/self/cgroup.
std::map<std::string, std::string> groups_of(const std::string& text) {
  std::map<std::string, std::string> groups;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    std::istringstream controllers(line.substr(first + 1, second - first - 1));
    const auto path = line.substr(second + 1);
    if (controllers.str().empty()) {
      groups[""] = path;
    }
    for (std::string controller; std::getline(controllers, controller, ',');) {
      groups[controller] = path;
    }
  }
  return groups;
}

// The group's folder and all above it, up to the mount point. In a container the path may name a folder that is
// mounted elsewhere: the mount point itself then is the group.
std::vector<std::string> folders(const std::string& mount, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto clean = fs::path(path).lexically_normal().relative_path();
  const bool inside = clean.empty() || *clean.begin() != "..";
  std::vector<std::string> result;
  auto folder = inside ? clean : fs::path();
  if (!fs::is_directory(fs::path(mount) / folder, error)) {
    folder = fs::path();
  }
  for (; !folder.empty(); folder = folder.parent_path()) {
    result.push_back((fs::path(mount) / folder).string());
  }
  result.push_back(mount);
  return result;
}

std::optional<double> quota_v2(const std::string& folder) {
  const auto text = read_text(folder + "/cpu.max");
  if (!text) {
    return std::nullopt;
  }
  std::istringstream words(*text);
  double quota = 0;
  double period = 0;
  if (words >> quota >> period && period > 0) {
    return quota / period;
  }
  return std::nullopt;  // "max 100000"
}

std::optional<double> quota_v1(const std::string& folder) {
  const auto quota = read_number(folder + "/cpu.cfs_quota_us");
  const auto period = read_number(folder + "/cpu.cfs_period_us");
  if (quota && period && *quota > 0 && *period > 0) {
    return static_cast<double>(*quota) / static_cast<double>(*period);
  }
  return std::nullopt;  // -1: no limit
}

std::optional<std::uint64_t> bytes_in(const std::string& path) {
  const auto value = read_number(path);
  if (!value || *value < 0 || static_cast<std::uint64_t>(*value) >= kNoLimit) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(*value);
}

// A value of a file with a name and a number on each line.
std::uint64_t counter_in(const std::string& file, const std::string& key) {
  std::istringstream words(read_text(file).value_or(""));
  std::string name;
  std::uint64_t value = 0;
  while (words >> name >> value) {
    if (name == key) {
      return value;
    }
  }
  return 0;
}

// Takes the quota of the group in `folder` if it is the tightest one, with the group's counters.
void tighten_quota(Cgroup& group, const std::string& folder, std::optional<double> quota) {
  if (quota && (!group.cpus || *quota < *group.cpus)) {
    group.cpus = quota;
    group.periods = counter_in(folder + "/cpu.stat", "nr_periods");
    group.throttled_periods = counter_in(folder + "/cpu.stat", "nr_throttled");
  }
}

// The number of a process' parent in /proc/PID/status; "" where it is not there.
std::string parent_of(const std::string& status) {
  std::istringstream words(status);
  for (std::string word; words >> word;) {
    if (word == "PPid:") {
      words >> word;
      return word;
    }
  }
  return "";
}

// Where a controller of version 1 is mounted: alone, or together with others under a joint name.
std::string mount_v1(const std::string& mounts, const std::string& controller) {
  std::error_code error;
  const std::string base = mounts + "/";
  if (std::filesystem::is_directory(base + controller, error)) {
    return base + controller;
  }
  for (const auto& name : list_directory(base)) {
    std::istringstream parts(name);
    for (std::string part; std::getline(parts, part, ',');) {
      if (part == controller) {
        return base + name;
      }
    }
  }
  return {};
}

// Where control groups are mounted, "" where nothing shows it. A process in a mount namespace with a /sys of its own
// (`ip netns exec`, some containers) has none there; one that started it may have, and names the groups in the same
// way if both are in one cgroup namespace.
std::string mounts_of(const SystemRoots& roots) {
  const std::string own = roots.sys + "/fs/cgroup";
  const std::string space = link_name(roots.proc + "/self/ns/cgroup");
  std::string process = roots.proc + "/self";
  std::string mounts = own;
  while (list_directory(mounts).empty()) {
    const std::string parent = parent_of(read_text(process + "/status").value_or(""));
    if (parent.empty() || parent == "0") {
      return "";
    }
    process = roots.proc + "/" + parent;
    mounts = link_name(process + "/ns/cgroup") == space ? process + "/root/sys/fs/cgroup" : own;
  }
  return mounts;
}

Cgroup read_v2(const std::string& mount, const std::string& path) {
  Cgroup group;
  group.version = 2;
  group.path = path;
  for (const auto& folder : folders(mount, path)) {
    tighten_quota(group, folder, quota_v2(folder));
    const auto limit = bytes_in(folder + "/memory.max");
    if (limit && (!group.memory || *limit < *group.memory)) {
      group.memory = limit;
      group.memory_used = bytes_in(folder + "/memory.current");
      group.reclaimable = counter_in(folder + "/memory.stat", "inactive_file");
    }
    if (group.cpuset.empty()) {
      group.cpuset = read_text(folder + "/cpuset.cpus.effective").value_or("");
    }
  }
  return group;
}

Cgroup read_v1(const std::string& mounts, const std::map<std::string, std::string>& groups) {
  Cgroup group;
  group.version = 1;
  group.path = groups.contains("memory") ? groups.at("memory") : "";
  const auto folders_of = [&](const std::string& controller) {
    const auto mount = groups.contains(controller) ? mount_v1(mounts, controller) : std::string();
    return mount.empty() ? std::vector<std::string>() : folders(mount, groups.at(controller));
  };
  for (const auto& folder : folders_of("cpu")) {
    tighten_quota(group, folder, quota_v1(folder));
  }
  for (const auto& folder : folders_of("memory")) {
    const auto limit = bytes_in(folder + "/memory.limit_in_bytes");
    if (limit && (!group.memory || *limit < *group.memory)) {
      group.memory = limit;
      group.memory_used = bytes_in(folder + "/memory.usage_in_bytes");
      group.reclaimable = counter_in(folder + "/memory.stat", "total_inactive_file");
    }
  }
  for (const auto& folder : folders_of("cpuset")) {
    if (group.cpuset.empty()) {
      group.cpuset = read_text(folder + "/cpuset.effective_cpus").value_or("");
    }
  }
  return group;
}

}  // namespace

Cgroup read_cgroup(const SystemRoots& roots) {
  const auto text = read_text(roots.proc + "/self/cgroup");
  const auto groups = groups_of(text.value_or(""));
  const auto mounts = mounts_of(roots);
  std::error_code error;
  if (!mounts.empty() && (groups.contains("memory") || groups.contains("cpu"))) {
    return read_v1(mounts, groups);
  }
  if (groups.contains("") && std::filesystem::exists(mounts + "/cgroup.controllers", error)) {
    return read_v2(mounts, groups.at(""));
  }
  Cgroup group;
  group.unknown = text ? "no control group of this process is mounted below " + roots.sys + "/fs/cgroup"
                       : roots.proc + "/self/cgroup cannot be read";
  return group;
}

}  // namespace elbowroom
