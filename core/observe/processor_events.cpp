#include "observe/processor_events.hpp"

#include <linux/perf_event.h>

#include <charconv>
#include <set>

#include "base/system_files.hpp"
#include "observe/counters.hpp"

namespace elbowroom {
namespace {

constexpr int kCounterMaskShift = 24;  // of x86's raw configurations: cycles in which the count reaches the mask

constexpr std::uint64_t with_mask(std::uint64_t event, std::uint64_t mask) { return event | mask << kCounterMaskShift; }

int number(const std::map<std::string, std::string>& cpuinfo, const char* key) {
  const auto entry = cpuinfo.find(key);
  int value = -1;
  if (entry != cpuinfo.end()) {
    const std::string& text = entry->second;
    const std::size_t skip = text.starts_with("0x") ? 2 : 0;
    std::from_chars(text.data() + skip, text.data() + text.size(), value, skip == 0 ? 10 : 16);
  }
  return value;
}

// Models of family 6, by the generations that share their events (Intel's perfmon event lists).
const std::set<int> kSandyBridge = {42, 45};
const std::set<int> kIvyBridgeToBroadwell = {58, 60, 61, 62, 63, 69, 70, 71, 79, 86};
const std::set<int> kSkylake = {78, 85, 94, 102, 142, 158, 165, 166};  // to Cascade Lake and Comet Lake
const std::set<int> kIceLake = {106, 108, 125, 126, 140, 141, 157, 167};
const std::set<int> kSapphireRapids = {143, 173, 174, 207};  // and Emerald and Granite Rapids: one kind of core

ProcessorEvents of_intel(int family, int model) {
  ProcessorEvents events;
  if (family != 6) {
    return events;
  }
  if (kSandyBridge.contains(model) || kIvyBridgeToBroadwell.contains(model) || kSkylake.contains(model) ||
      kIceLake.contains(model) || kSapphireRapids.contains(model)) {
    events.l1_misses = {"L1D.REPLACEMENT", 0x0151};
  }
  if (kIvyBridgeToBroadwell.contains(model)) {
    events.memory_stalls = {{"CYCLE_ACTIVITY.STALLS_LDM_PENDING", with_mask(0x06a3, 6)},
                            {"RESOURCE_STALLS.SB", 0x08a2}};
    if (model != 58 && model != 62) {  // Ivy Bridge has no such event
      events.l2_misses = {"L2_RQSTS.MISS", 0x3f24};
    }
  } else if (kSkylake.contains(model) || kIceLake.contains(model)) {
    // From Ice Lake on, two stores leave the buffer in a cycle, and the event has a mask of cycles.
    const std::uint64_t stores = kSkylake.contains(model) ? 0x40a6 : with_mask(0x40a6, 2);
    events.memory_stalls = {{"CYCLE_ACTIVITY.STALLS_MEM_ANY", with_mask(0x14a3, 20)},
                            {"EXE_ACTIVITY.BOUND_ON_STORES", stores}};
    events.l2_misses = {"L2_RQSTS.MISS", 0x3f24};
  } else if (kSapphireRapids.contains(model)) {
    events.memory_stalls = {{"EXE_ACTIVITY.BOUND_ON_LOADS", with_mask(0x21a6, 5)},
                            {"EXE_ACTIVITY.BOUND_ON_STORES", with_mask(0x40a6, 2)}};
    events.l2_misses = {"L2_RQSTS.MISS", 0x3f24};
  }
  return events;
}

// Zen 4 is in family 25 with Zen 3; Zen 3 has no event for cycles without retirement.
bool is_zen_4_or_later(int family, int model) {
  const bool zen_4 = (model >= 0x10 && model <= 0x1f) || (model >= 0x60 && model <= 0xaf);
  return family == 26 || (family == 25 && zen_4);
}

ProcessorEvents of_amd(int family, int model) {
  ProcessorEvents events;
  if (family == 23 || family == 25 || family == 26) {
    events.l2_misses = {"l2_cache_req_stat.ls_rd_blk_c", 0x0864};
  }
  if (family == 25 || family == 26) {
    events.l1_misses = {"ls_dmnd_fills_from_sys.all", 0x5f43};
  }
  if (is_zen_4_or_later(family, model)) {
    events.memory_stalls = {{"ex_no_retire.load_not_complete", 0xa2d6}};
  }
  return events;
}

}  // namespace

ProcessorEvents processor_events(const std::map<std::string, std::string>& cpuinfo) {
  const auto vendor = cpuinfo.find("vendor_id");
  if (vendor != cpuinfo.end()) {
    const int family = number(cpuinfo, "cpu family");
    const int model = number(cpuinfo, "model");
    return vendor->second == "GenuineIntel"   ? of_intel(family, model)
           : vendor->second == "AuthenticAMD" ? of_amd(family, model)
                                              : ProcessorEvents{};
  }
  // Common events of the architecture (Arm ARM, D13); a core without one refuses to open it.
  if (cpuinfo.contains("CPU implementer")) {
    return {{ProcessorEvent{"STALL_BACKEND_MEM", 0x4005}},
            ProcessorEvent{"L1D_CACHE_REFILL", 0x03},
            ProcessorEvent{"L2D_CACHE_REFILL", 0x17}};
  }
  return {};
}

ProcessorEvents processor_events_here() {
  return processor_events(parse_cpuinfo(read_text("/proc/cpuinfo").value_or("")));
}

std::string names_of(const std::vector<ProcessorEvent>& events) {
  std::string names;
  for (const ProcessorEvent& event : events) {
    names += (names.empty() ? "" : " + ") + event.name;
  }
  return names;
}

std::string memory_stalls_refusal() {
  const auto events = processor_events_here().memory_stalls;
  for (const ProcessorEvent& event : events) {
    const Counter counter(PERF_TYPE_RAW, event.config, false);
    if (!counter.works()) {
      return event.name + ": " + counter_reason_here(counter.error());
    }
  }
  return events.empty() ? "no event of this processor for cycles stalled on memory is known" : "";
}

}  // namespace elbowroom
