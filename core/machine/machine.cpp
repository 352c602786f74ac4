#include "machine/machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "base/cgroup.hpp"
#include "base/system_files.hpp"

namespace elbowroom {
namespace {

struct Bitmap {
  hwloc_bitmap_t set = hwloc_bitmap_alloc();
  Bitmap() = default;
  Bitmap(const Bitmap&) = delete;
  Bitmap& operator=(const Bitmap&) = delete;
  ~Bitmap() { hwloc_bitmap_free(set); }
};

hwloc_topology_t load(hwloc_type_filter_e io_filter) {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) {
    throw std::runtime_error("hwloc cannot make a topology: out of memory");
  }
  // Cores outside the cpuset are kept, so that "not allowed" and "does not exist" are told apart.
  hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_io_types_filter(topology, io_filter);
  // Graphics and accelerators are not looked for: asking their drivers takes seconds, and makes threads and contexts.
  for (const auto* component : {"opencl", "cuda", "nvml", "rsmi", "levelzero", "gl"}) {
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  }
  if (hwloc_topology_load(topology) != 0) {
    const int cause = errno;
    hwloc_topology_destroy(topology);
    throw std::runtime_error(fmt::format("hwloc cannot read this machine's topology: {}", std::strerror(cause)));
  }
  return topology;
}

std::size_t count_pci(hwloc_topology_t topology) {
  const int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PCI_DEVICE);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

// "Important" leaves out bridges and chipset devices, so a blind hwloc is told from an uninteresting machine by
// looking once more at everything.
bool pci_visible(hwloc_topology_t topology) {
  if (count_pci(topology) > 0) {
    return true;
  }
  if (list_directory("/sys/bus/pci/devices").empty()) {
    return true;
  }
  const auto everything = load(HWLOC_TYPE_FILTER_KEEP_ALL);
  const bool present = count_pci(everything) > 0;
  hwloc_topology_destroy(everything);
  return present;
}

std::vector<int> numbers_of(hwloc_const_bitmap_t set) {
  std::vector<int> numbers;
  for (int number = hwloc_bitmap_first(set); number >= 0; number = hwloc_bitmap_next(set, number)) {
    numbers.push_back(number);
  }
  return numbers;
}

int package_of(hwloc_topology_t topology, hwloc_obj_t object) {
  const auto package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, object);
  if (package == nullptr) {
    return 0;
  }
  // POWER, s390x and some virtual machines do not number sockets.
  return static_cast<int>(package->os_index == HWLOC_UNKNOWN_INDEX ? package->logical_index : package->os_index);
}

// Cores of this process: the cpuset of its cgroup within its affinity. Where hwloc reports no cores (some virtual
// machines), processing units stand for them.
std::vector<CoreInfo> read_cores(hwloc_topology_t topology) {
  Bitmap bound;
  const bool knows = hwloc_get_cpubind(topology, bound.set, HWLOC_CPUBIND_PROCESS) == 0;
  Bitmap allowed;
  hwloc_bitmap_copy(allowed.set, hwloc_topology_get_allowed_cpuset(topology));
  if (knows) {
    hwloc_bitmap_and(allowed.set, allowed.set, bound.set);
  }
  const bool has_cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0;
  const auto type = has_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  std::vector<CoreInfo> cores;
  for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;) {
    CoreInfo core;
    core.pus = numbers_of(object->cpuset);
    if (core.pus.empty()) {
      continue;
    }
    core.number = core.pus.front();
    // A core near several nodes (DRAM and HBM) belongs to the lowest: firmware numbers DRAM first.
    core.node = hwloc_bitmap_first(object->nodeset);
    core.package = package_of(topology, object);
    // Threads are bound to the first unit, so that one decides.
    core.allowed = hwloc_bitmap_isset(allowed.set, static_cast<unsigned>(core.number)) != 0;
    cores.push_back(std::move(core));
  }
  std::sort(cores.begin(), cores.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  return cores;
}

std::size_t read_last_level(hwloc_topology_t topology) {
  for (const auto type :
       {HWLOC_OBJ_L5CACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L1CACHE}) {
    std::size_t largest = 0;
    for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;) {
      largest = std::max(largest, static_cast<std::size_t>(object->attr->cache.size));
    }
    if (largest > 0) {
      return largest;
    }
  }
  return 0;
}

}  // namespace

struct Machine::Impl {
  hwloc_topology_t topology = nullptr;
  std::vector<CoreInfo> cores;
  std::vector<NodeInfo> nodes;
  std::size_t last_level_cache = 0;
  bool pci = false;

  ~Impl() {
    if (topology != nullptr) {
      hwloc_topology_destroy(topology);
    }
  }
};

const Machine& Machine::here() {
  static const Machine machine;
  return machine;
}

Machine::Machine() : impl_(std::make_unique<Impl>()) {
  if (hwloc_get_api_version() >> 16 != HWLOC_API_VERSION >> 16) {
    throw std::runtime_error(
        fmt::format("the hwloc loaded has interface {:#x}, the probe was built for {:#x}; build it again",
                    hwloc_get_api_version(), HWLOC_API_VERSION));
  }
  impl_->topology = load(HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  // On a topology read from a file hwloc binds nothing and says it did.
  if (hwloc_topology_is_thissystem(impl_->topology) == 0) {
    throw std::runtime_error(
        "hwloc is set to load another machine's topology; unset HWLOC_XMLFILE, HWLOC_SYNTHETIC "
        "and HWLOC_FSROOT");
  }
  impl_->cores = read_cores(impl_->topology);
  impl_->last_level_cache = read_last_level(impl_->topology);
  impl_->pci = pci_visible(impl_->topology);
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(impl_->topology, HWLOC_OBJ_NUMANODE, object)) != nullptr;) {
    impl_->nodes.push_back({static_cast<int>(object->os_index), object->attr->numanode.local_memory, 0});
  }
  std::sort(impl_->nodes.begin(), impl_->nodes.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  for (auto& node : impl_->nodes) {
    node.available = available_memory(node.number);
  }
}

Machine::~Machine() = default;

const std::vector<CoreInfo>& Machine::cores() const { return impl_->cores; }
const std::vector<NodeInfo>& Machine::nodes() const { return impl_->nodes; }
std::size_t Machine::last_level_cache() const { return impl_->last_level_cache; }
bool Machine::sees_pci() const { return impl_->pci; }

const CoreInfo* Machine::core(int number) const {
  const auto entry = std::find_if(impl_->cores.begin(), impl_->cores.end(), [&](const CoreInfo& core) {
    return std::find(core.pus.begin(), core.pus.end(), number) != core.pus.end();
  });
  return entry == impl_->cores.end() ? nullptr : &*entry;
}

const NodeInfo* Machine::node(int number) const {
  const auto entry = std::find_if(impl_->nodes.begin(), impl_->nodes.end(),
                                  [&](const NodeInfo& node) { return node.number == number; });
  return entry == impl_->nodes.end() ? nullptr : &*entry;
}

std::vector<CacheInfo> Machine::caches(int core_number) const {
  std::vector<CacheInfo> result;
  auto* unit = hwloc_get_pu_obj_by_os_index(impl_->topology, static_cast<unsigned>(core_number));
  for (hwloc_obj_t object = unit; object != nullptr; object = object->parent) {
    if (hwloc_obj_type_is_dcache(object->type) != 0) {
      const auto& cache = object->attr->cache;
      result.push_back({static_cast<int>(cache.depth), static_cast<int>(object->logical_index), cache.size,
                        cache.associativity, cache.linesize});
    }
  }
  return result;
}

std::string Machine::hwloc_version() const {
  // The library says which release it is; its interface's number lags behind (2.9 keeps that of 2.8).
  const char* release = hwloc_obj_get_info_by_name(hwloc_get_root_obj(impl_->topology), "hwlocVersion");
  if (release != nullptr) {
    return release;
  }
  const unsigned version = hwloc_get_api_version();
  return fmt::format("{}.{}.{}", version >> 16, (version >> 8) & 0xff, version & 0xff);
}

std::uint64_t Machine::available_memory(int number) const {
  const auto whole = parse_meminfo(read_text("/proc/meminfo").value_or(""));
  const auto value = [](const auto& table, const char* key) {
    const auto entry = table.find(key);
    return entry == table.end() ? std::uint64_t{0} : entry->second;
  };
  std::uint64_t available = value(whole, "MemAvailable");
  // Memory plugged in later can be missing from the node's own file, so a single node takes the machine's figure.
  if (impl_->nodes.size() > 1) {
    const auto own =
        parse_meminfo(read_text(fmt::format("/sys/devices/system/node/node{}/meminfo", number)).value_or(""));
    if (!own.empty()) {
      available = value(own, "MemFree") + value(own, "Active(file)") + value(own, "Inactive(file)") +
                  value(own, "SReclaimable") / 2;
    }
  }
  const auto group = read_cgroup();
  if (group.memory && group.memory_used) {
    const auto used = *group.memory_used - std::min(*group.memory_used, group.reclaimable);
    available = std::min(available, *group.memory - std::min(*group.memory, used));
  }
  return available;
}

void Machine::write_xml(const std::string& path) const {
  if (hwloc_topology_export_xml(impl_->topology, path.c_str(), 0) != 0) {
    throw std::runtime_error(fmt::format("the topology cannot be written to '{}': {}", path, std::strerror(errno)));
  }
}

void Machine::bind_this_thread(int core_number) const {
  const auto* result = core(core_number);
  if (result == nullptr) {
    std::vector<int> numbers;
    for (const auto& one : cores()) {
      numbers.push_back(one.number);
    }
    throw std::runtime_error(
        fmt::format("core {} does not exist; cores here: {}", core_number, format_cpu_list(std::move(numbers))));
  }
  Bitmap unit;
  hwloc_bitmap_only(unit.set, static_cast<unsigned>(result->number));
  if (hwloc_set_cpubind(impl_->topology, unit.set, HWLOC_CPUBIND_THREAD | HWLOC_CPUBIND_STRICT) != 0) {
    const int cause = errno;
    throw std::runtime_error(fmt::format("a thread cannot be bound to core {}: {}{}", core_number, std::strerror(cause),
                                         result->allowed ? "" : " (it is outside this process' cpuset)"));
  }
}

std::string Machine::bind_memory(void* address, std::size_t bytes, int node_number) const {
  Bitmap nodes;
  hwloc_bitmap_only(nodes.set, static_cast<unsigned>(node_number));
  if (hwloc_set_area_membind(impl_->topology, address, bytes, nodes.set, HWLOC_MEMBIND_BIND,
                             HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_STRICT) == 0) {
    return "";
  }
  return std::strerror(errno);
}

}  // namespace elbowroom
