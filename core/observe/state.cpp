#include "observe/state.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "base/cgroup.hpp"
#include "machine/machine.hpp"
#include "observe/frequency.hpp"
#include "observe/memory_bandwidth.hpp"
#include "observe/observer.hpp"

namespace elbowroom {

using nlohmann::json;

json unknown(const std::string& reason) { return {{"unknown", reason}}; }

namespace {

json text_or_unknown(const std::string& path) {
  const auto text = read_text(path);
  return text && !text->empty() ? json(*text) : unknown(path + " cannot be read");
}

json number_or_unknown(const std::string& path) {
  const auto number = read_number(path);
  return number ? json(*number) : unknown(path + " cannot be read");
}

json flag_or_unknown(const std::string& path) {
  const auto number = read_number(path);
  return number ? json(*number != 0) : unknown(path + " cannot be read");
}

std::vector<int> online_units(const SystemRoots& roots) {
  try {
    return parse_cpu_list(read_text(roots.sys + "/devices/system/cpu/online").value_or("0"));
  } catch (const std::invalid_argument&) {
    return {0};
  }
}

std::string cpufreq_of(const SystemRoots& roots, int unit) {
  return fmt::format("{}/devices/system/cpu/cpu{}/cpufreq", roots.sys, unit);
}

// The word in brackets of "always [madvise] never".
json chosen_word(const std::string& path) {
  const auto text = read_text(path);
  const auto open = text ? text->find('[') : std::string::npos;
  const auto close = text ? text->find(']') : std::string::npos;
  if (open == std::string::npos || close == std::string::npos || close < open) {
    return unknown(path + " cannot be read");
  }
  return text->substr(open + 1, close - open - 1);
}

// Governors in use: {"performance": "0-35"}.
json governors(const SystemRoots& roots, const std::vector<int>& units) {
  std::map<std::string, std::vector<int>> result;
  for (const int unit : units) {
    if (const auto governor = read_text(cpufreq_of(roots, unit) + "/scaling_governor")) {
      result[*governor].push_back(unit);
    }
  }
  if (result.empty()) {
    return unknown("no cpufreq");
  }
  json table;
  for (const auto& [governor, numbers] : result) {
    table[governor] = format_cpu_list(numbers);
  }
  return table;
}

json turbo(const SystemRoots& roots) {
  if (const auto off = read_number(roots.sys + "/devices/system/cpu/intel_pstate/no_turbo")) {
    return *off == 0;
  }
  if (const auto boost = read_number(roots.sys + "/devices/system/cpu/cpufreq/boost")) {
    return *boost != 0;
  }
  return unknown("neither intel_pstate/no_turbo nor cpufreq/boost is there");
}

json frequencies(const SystemRoots& roots, const std::vector<int>& units) {
  const auto folder = cpufreq_of(roots, units.front());
  const auto limit = [&](const char* file) {
    const auto value = read_number(folder + "/" + file);
    return value ? json(*value) : unknown("no cpufreq/" + std::string(file));
  };
  json table{{"min_khz", limit("cpuinfo_min_freq")},
             {"base_khz", limit("base_frequency")},
             {"max_khz", limit("cpuinfo_max_freq")}};
  json now = json::object();
  for (const int unit : units) {
    if (const auto khz = frequency_khz(unit, roots)) {
      now[std::to_string(unit)] = *khz;
    }
  }
  table["now_khz"] = now.empty() ? unknown(frequency_refusal({units.front()}, roots)) : now;
  return table;
}

json reserved_huge_pages(const SystemRoots& roots) {
  const auto base = roots.sys + "/kernel/mm/hugepages";
  json table = json::object();
  for (const auto& name : list_directory(base)) {
    const auto total = read_number(base + "/" + name + "/nr_hugepages");
    const auto free = read_number(base + "/" + name + "/free_hugepages");
    if (total && free) {
      table[name.substr(name.find('-') + 1)] = {{"total", *total}, {"free", *free}};
    }
  }
  return table.empty() ? unknown(base + " cannot be read") : table;
}

json limit_or(const std::string& reason, const json& value) { return reason.empty() ? value : unknown(reason); }

// PCI Express link as "16.0 GT/s PCIe x16".
json link_of(const std::string& device) {
  const auto speed = read_text(device + "/current_link_speed");
  const auto width = read_text(device + "/current_link_width");
  if (!speed || !width || speed->starts_with("Unknown") || *width == "0") {
    return unknown("the device shows no PCI Express link");
  }
  return *speed + " x" + *width;
}

json node_of(const std::string& device) {
  const auto node = read_number(device + "/numa_node");
  if (!node) {
    return unknown("the device does not say its NUMA node");
  }
  return *node >= 0 ? json(*node) : unknown("the firmware does not say its NUMA node");
}

json one_interface(const SystemRoots& roots, const std::string& name) {
  const auto folder = roots.sys + "/class/net/" + name;
  const auto speed = read_number(folder + "/speed");
  const auto driver = link_name(folder + "/device/driver");
  return {{"name", name},
          {"kind", "network"},
          {"driver", driver.empty() ? unknown("no driver link") : json(driver)},
          {"state", text_or_unknown(folder + "/operstate")},
          {"mbit_per_s", speed && *speed > 0 ? json(*speed) : unknown("the driver reports no speed")},
          {"numa_node", node_of(folder + "/device")},
          {"link", link_of(folder + "/device")}};
}

json one_fabric(const SystemRoots& roots, const std::string& name) {
  const auto folder = roots.sys + "/class/infiniband/" + name;
  const auto ports = list_directory(folder + "/ports");
  const auto port = folder + "/ports/" + (ports.empty() ? "1" : ports.front());
  const auto driver = link_name(folder + "/device/driver");
  return {{"name", name},
          {"kind", "openfabrics"},
          {"driver", driver.empty() ? unknown("no driver link") : json(driver)},
          {"state", text_or_unknown(port + "/state")},
          {"rate", text_or_unknown(port + "/rate")},
          {"numa_node", node_of(folder + "/device")},
          {"link", link_of(folder + "/device")}};
}

// The hypervisor behind the processor's "hypervisor" flag, as far as the firmware names it.
json hypervisor(const SystemRoots& roots, const std::map<std::string, std::string>& cpuinfo) {
  const auto flags = cpuinfo.find("flags");
  const auto vendor = read_text(roots.sys + "/class/dmi/id/sys_vendor");
  const auto product = read_text(roots.sys + "/class/dmi/id/product_name");
  const auto type = read_text(roots.sys + "/hypervisor/type");
  if (flags == cpuinfo.end()) {
    return type ? json(*type) : unknown("/proc/cpuinfo has no flags");
  }
  if ((" " + flags->second + " ").find(" hypervisor ") == std::string::npos) {
    return "none";
  }
  if (type) {
    return *type;
  }
  return vendor && product ? json(*vendor + " " + *product) : json("yes, unnamed");
}

// Options of the kernel's command line that change what is measured; the rest of it is nobody's business.
json kernel_options(const SystemRoots& roots) {
  static constexpr std::array kTelling{"isolcpus",
                                       "nohz_full",
                                       "rcu_nocbs",
                                       "mitigations",
                                       "nosmt",
                                       "iommu",
                                       "amd_iommu",
                                       "intel_iommu",
                                       "intel_pstate",
                                       "amd_pstate",
                                       "idle",
                                       "tsc",
                                       "clocksource",
                                       "hugepages",
                                       "hugepagesz",
                                       "numa",
                                       "maxcpus",
                                       "processor.max_cstate",
                                       "intel_idle.max_cstate",
                                       "transparent_hugepage",
                                       "default_hugepagesz",
                                       "numa_balancing"};
  const auto text = read_text(roots.proc + "/cmdline");
  if (!text) {
    return unknown(roots.proc + "/cmdline cannot be read");
  }
  json options = json::array();
  std::istringstream words(*text);
  for (std::string word; words >> word;) {
    const auto name = word.substr(0, word.find('='));
    if (std::find(kTelling.begin(), kTelling.end(), name) != kTelling.end()) {
      options.push_back(word);
    }
  }
  return options;
}

// Limits and frequency of what is outside the cores (last-level cache, memory controller), per package and die.
json uncore(const SystemRoots& roots) {
  const auto base = roots.sys + "/devices/system/cpu/intel_uncore_frequency";
  json table = json::object();
  for (const auto& name : list_directory(base)) {
    const auto low = read_number(base + "/" + name + "/min_freq_khz");
    const auto high = read_number(base + "/" + name + "/max_freq_khz");
    const auto now = read_number(base + "/" + name + "/current_freq_khz");
    if (low && high) {
      table[name] = {{"min_khz", *low},
                     {"max_khz", *high},
                     {"now_khz", now ? json(*now) : unknown("this kernel does not report it")}};
    }
  }
  return table.empty() ? unknown("no intel_uncore_frequency (module of that name, Intel only)") : table;
}

json host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? json(name) : unknown("gethostname failed");
}

json affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) {
    return unknown("sched_getaffinity failed");
  }
  std::vector<int> numbers;
  for (int number = 0; number < CPU_SETSIZE; ++number) {
    if (CPU_ISSET(static_cast<std::size_t>(number), &set)) {
      numbers.push_back(number);
    }
  }
  return format_cpu_list(numbers);
}

json node_table(const Machine& machine) {
  json nodes = json::array();
  for (const auto& node : machine.nodes()) {
    nodes.push_back(
        {{"number", node.number}, {"memory", node.memory}, {"available", machine.available_memory(node.number)}});
  }
  return nodes;
}

}  // namespace

json load_state(const SystemRoots& roots) {
  json table;
  const auto load = parse_loadavg(read_text(roots.proc + "/loadavg").value_or(""));
  const auto reason = roots.proc + "/loadavg cannot be read";
  table["load"] = load ? json{load->one, load->five, load->fifteen} : unknown(reason);
  table["running_tasks"] = load ? json(load->running) : unknown(reason);
  table["tasks"] = load ? json(load->tasks) : unknown(reason);
  const auto steal =
      parse_steal(read_text(roots.proc + "/stat").value_or(""), static_cast<double>(sysconf(_SC_CLK_TCK)));
  double sum = 0;
  for (const auto& [unit, seconds] : steal) {
    sum += seconds;
  }
  table["steal_s"] = steal.empty() ? unknown(roots.proc + "/stat cannot be read") : json(sum);
  table["uptime_s"] = unknown(roots.proc + "/uptime cannot be read");
  if (const auto uptime = read_text(roots.proc + "/uptime")) {
    table["uptime_s"] = std::strtod(uptime->c_str(), nullptr);
  }
  return table;
}

json processor_state(const SystemRoots& roots) {
  const auto cpuinfo = parse_cpuinfo(read_text(roots.proc + "/cpuinfo").value_or(""));
  const auto units = online_units(roots);
  const auto field = [&](const char* key) {
    const auto entry = cpuinfo.find(key);
    return entry == cpuinfo.end() ? unknown(fmt::format("/proc/cpuinfo has no '{}'", key)) : json(entry->second);
  };
  return {{"cpu_model", field("model name")},
          {"microcode", field("microcode")},
          {"online", format_cpu_list(units)},
          {"smt", flag_or_unknown(roots.sys + "/devices/system/cpu/smt/active")},
          {"governor", governors(roots, units)},
          {"turbo", turbo(roots)},
          {"frequency", frequencies(roots, units)},
          {"uncore", uncore(roots)},
          {"idle_driver", text_or_unknown(roots.sys + "/devices/system/cpu/cpuidle/current_driver")},
          {"prefetchers", unknown("their setting is in a model specific register, which the kernel does not show")},
          {"ddio", unknown("a setting of the PCI Express root port that the kernel does not show")},
          {"nps_snc", unknown("a firmware setting; the number of NUMA nodes per socket hints at it")}};
}

json memory_state(const SystemRoots& roots) {
  const auto memory = parse_meminfo(read_text(roots.proc + "/meminfo").value_or(""));
  const auto bytes = [&](const char* key) {
    const auto entry = memory.find(key);
    return entry == memory.end() ? unknown(fmt::format("/proc/meminfo has no {}", key)) : json(entry->second);
  };
  return {{"memory_kernel", bytes("MemTotal")},
          {"memory_available", bytes("MemAvailable")},
          {"transparent_huge_pages", chosen_word(roots.sys + "/kernel/mm/transparent_hugepage/enabled")},
          {"reserved_huge_pages", reserved_huge_pages(roots)},
          {"numa_balancing", flag_or_unknown(roots.proc + "/sys/kernel/numa_balancing")}};
}

json cgroup_state(const SystemRoots& roots) {
  const auto group = read_cgroup(roots);
  const auto& why = group.unknown;
  return {{"version", limit_or(why, group.version)},
          {"path", limit_or(why, group.path)},
          {"cpu_max", limit_or(why, group.cpus ? json(*group.cpus) : json("none"))},
          {"memory_max", limit_or(why, group.memory ? json(*group.memory) : json("none"))},
          {"memory_used", limit_or(why, group.memory_used ? json(*group.memory_used) : json("not limited"))},
          {"cpuset", group.cpuset.empty() ? unknown(why.empty() ? "the cpuset controller does not say" : why)
                                          : json(group.cpuset)}};
}

json nic_state(const SystemRoots& roots) {
  json nics = json::array();
  for (const auto& name : list_directory(roots.sys + "/class/net")) {
    // Interfaces without a device (loopback, bridges, tunnels) are the kernel's own.
    if (!list_directory(roots.sys + "/class/net/" + name + "/device").empty()) {
      nics.push_back(one_interface(roots, name));
    }
  }
  for (const auto& name : list_directory(roots.sys + "/class/infiniband")) {
    nics.push_back(one_fabric(roots, name));
  }
  return nics;
}

json platform_state(const SystemRoots& roots) {
  const auto cpuinfo = parse_cpuinfo(read_text(roots.proc + "/cpuinfo").value_or(""));
  const auto iommus = list_directory(roots.sys + "/class/iommu");
  json names = iommus;
  utsname system{};
  const bool named = uname(&system) == 0;
  return {{"kernel", named ? json(system.release) : unknown("uname failed")},
          {"architecture", named ? json(system.machine) : unknown("uname failed")},
          {"kernel_options", kernel_options(roots)},
          {"hypervisor", hypervisor(roots, cpuinfo)},
          {"iommu", iommus.empty() ? json("none") : names},
          {"clocksource", text_or_unknown(roots.sys + "/devices/system/clocksource/clocksource0/current_clocksource")},
          {"perf_event_paranoid", number_or_unknown(roots.proc + "/sys/kernel/perf_event_paranoid")},
          {"sched_autogroup", flag_or_unknown(roots.proc + "/sys/kernel/sched_autogroup_enabled")},
          {"resctrl",
           bandwidth_refusal(roots).empty() ? json("monitors memory bandwidth") : unknown(bandwidth_refusal(roots))}};
}

json machine_state() {
  const SystemRoots roots;
  json state;
  for (const auto& part : {load_state(roots), processor_state(roots), memory_state(roots), platform_state(roots)}) {
    state.update(part);
  }
  const auto& machine = Machine::here();
  std::uint64_t memory = 0;
  for (const auto& node : machine.nodes()) {
    memory += node.memory;
  }
  state["host"] = host_name();
  state["affinity"] = affinity();
  state["cgroup"] = cgroup_state(roots);
  state["memory_hwloc"] = memory;
  state["nodes"] = node_table(machine);
  state["nics"] = nic_state(roots);
  state["hwloc"] = {{"version", machine.hwloc_version()}, {"pci", machine.sees_pci()}};
  return state;
}

}  // namespace elbowroom
