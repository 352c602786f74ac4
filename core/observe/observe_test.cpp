#include <doctest/doctest.h>
#include <errno.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "machine/machine.hpp"
#include "machine/test_tree.hpp"
#include "observe/counters.hpp"
#include "observe/frequency.hpp"
#include "observe/memory_bandwidth.hpp"
#include "observe/observer.hpp"
#include "observe/processor_events.hpp"
#include "observe/state.hpp"

using namespace elbowroom;
using nlohmann::json;

namespace {

// Every leaf of an object is a value or {"unknown": reason}, never null or an empty reason.
void check_known_or_reasoned(const json& value, const std::string& where) {
  INFO(where);
  CHECK_FALSE(value.is_null());
  if (value.is_object()) {
    if (value.contains("unknown")) {
      CHECK(value.size() == 1);
      CHECK_FALSE(value["unknown"].get<std::string>().empty());
      return;
    }
    for (const auto& [key, item] : value.items()) {
      check_known_or_reasoned(item, where + "." + key);
    }
  }
}

}  // namespace

TEST_CASE("every observer is ok, or n/a with a reason") {
  const auto table = observers_available();
  for (const auto* name : {"steal", "interrupts", "context_switches", "migrations", "load", "frequency", "counters",
                           "memory_stalls", "memory_bytes", "pages"}) {
    INFO(name);
    REQUIRE(table.contains(name));
    if (table[name]["status"] != "ok") {
      CHECK(table[name]["status"] == "n/a");
      CHECK_FALSE(table[name]["reason"].get<std::string>().empty());
    }
  }
}

TEST_CASE("the machine's state has a value or a reason for everything") {
  const auto state = machine_state();
  check_known_or_reasoned(state, "state");
  for (const auto* key : {"load",
                          "running_tasks",
                          "steal_s",
                          "governor",
                          "turbo",
                          "smt",
                          "frequency",
                          "transparent_huge_pages",
                          "reserved_huge_pages",
                          "numa_balancing",
                          "cgroup",
                          "affinity",
                          "sched_autogroup",
                          "nics",
                          "iommu",
                          "hypervisor",
                          "kernel",
                          "cpu_model",
                          "microcode",
                          "memory_kernel",
                          "memory_hwloc",
                          "prefetchers",
                          "ddio",
                          "nps_snc",
                          "nodes",
                          "clocksource"}) {
    INFO(key);
    CHECK(state.contains(key));
  }
}

TEST_CASE("a phase counts the context switches of the threads that joined") {
  const auto core = Machine::here().cores().front().number;
  PhaseObserver observer({core}, {}, -1);
  observer.start();
  std::thread([&] {
    observer.join();
    for (int nap = 0; nap < 5; ++nap) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    observer.leave();
  }).join();
  observer.stop();
  const auto result = observer.result();
  CHECK(result["context_switches"]["voluntary"].get<long>() >= 5);
  CHECK(result["migrations"].get<long>() >= 0);
  CHECK(result["interrupts"].get<long>() >= 0);
  CHECK(result["steal_s"].get<double>() >= 0);
}

TEST_CASE("a move between cores is a migration") {
  std::vector<int> cores;
  for (const auto& core : Machine::here().cores()) {
    if (core.allowed) {
      cores.push_back(core.number);
    }
  }
  if (cores.size() < 2) {
    MESSAGE("skipped: one core only");
    return;
  }
  PhaseObserver observer(cores, {}, -1);
  observer.start();
  std::thread([&] {
    Machine::here().bind_this_thread(cores[0]);
    observer.join();
    Machine::here().bind_this_thread(cores[1]);
    observer.leave();
  }).join();
  observer.stop();
  CHECK(observer.result()["migrations"] == 1);
}

TEST_CASE("what no thread joined for, and what cannot be read, is absent") {
  PhaseObserver observer({99999}, {"frequency_trace", "counters"}, -1);
  observer.start();
  observer.stop();
  const auto result = observer.result();
  for (const auto* name :
       {"context_switches", "migrations", "counters", "interrupts", "steal_s", "frequency_khz", "frequency_trace"}) {
    INFO(name);
    CHECK_FALSE(result.contains(name));
  }
}

TEST_CASE("counters are present with a value, or absent") {
  PhaseObserver observer({Machine::here().cores().front().number}, {"counters"}, -1);
  observer.start();
  observer.join();
  volatile unsigned sum = 0;
  for (unsigned step = 0; step < 100000; ++step) {
    sum = sum + step;
  }
  observer.leave();
  observer.stop();
  const auto result = observer.result();
  const auto available = observers_available()["counters"]["status"] == "ok";
  REQUIRE(result.contains("counters") == available);
  if (available && result["counters"].contains("instructions")) {
    CHECK(result["counters"]["instructions"].get<double>() > 100000);
  }
}

TEST_CASE("a counter that shared its register is scaled, and one that never had it says nothing") {
  CHECK(CounterReading{1000, 400, 100}.scaled() == 4000);
  CHECK_FALSE(CounterReading{1000, 400, 100}.whole());
  CHECK(CounterReading{1000, 400, 400}.whole() == 1000);
  CHECK_FALSE(CounterReading{0, 400, 0}.scaled());
  CHECK_FALSE(CounterReading{0, 0, 0}.whole());
}

TEST_CASE("a refused counter says which permission is missing, or that the machine is virtual") {
  CHECK(counter_reason(EACCES, 3, false).find("perf_event_paranoid is 3") != std::string::npos);
  CHECK(counter_reason(EACCES, 3, false).find("CAP_PERFMON") != std::string::npos);
  CHECK(counter_reason(ENOENT, 2, true) == "no hardware counters (virtual machine)");
  CHECK(counter_reason(ENOENT, 2, false).find("virtual") == std::string::npos);
  CHECK(counter_reason(ENOSYS, -1, false).find("perf_event_open") != std::string::npos);
}

TEST_CASE("frequencies come from cpufreq, and its absence has a name") {
  FakeTree tree;
  tree.add("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2500000").add("sys/devices/system/cpu/cpu1/x", "");
  tree.add("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave");
  CHECK(frequency_khz(0, tree.roots()) == 2500000);
  CHECK_FALSE(frequency_khz(1, tree.roots()).has_value());
  CHECK(frequency_refusal({0}, tree.roots()).empty());
  CHECK(frequency_refusal({1}, tree.roots()) == "no cpufreq");
  CHECK(frequency_refusal({2}, tree.roots()) == "cpufreq does not report frequencies");
}

TEST_CASE("the sampler sees a frequency change") {
  bool changed = false;
  for (int wait_ms = 100; !changed && wait_ms <= 6400;
       wait_ms *= 2) {  // a busy machine may not run the sampler for long
    FakeTree tree;
    tree.add("sys/devices/system/cpu/cpu3/cpufreq/scaling_cur_freq", "2500000");
    FrequencySampler sampler({3, 4}, 1'000'000, -1, tree.roots());
    std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
    tree.add("sys/devices/system/cpu/cpu3/cpufreq/scaling_cur_freq", "1500000");
    std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
    sampler.stop();
    const auto& samples = sampler.samples();
    CHECK_FALSE(samples.contains(4));
    changed = samples.contains(3) && samples.at(3).front() == 2500000 && samples.at(3).back() == 1500000;
  }
  CHECK(changed);
}

TEST_CASE("the sampler sees the uncore") {
  FakeTree tree;
  const std::string part = "sys/devices/system/cpu/intel_uncore_frequency/package_00_die_00/";
  tree.add(part + "current_freq_khz", "2400000").add(part + "max_freq_khz", "2500000");
  CHECK(uncore_khz(tree.roots()) == std::map<std::string, std::int64_t>{{"package_00_die_00", 2400000}});
  bool seen = false;
  for (int wait_ms = 20; !seen && wait_ms <= 6400; wait_ms *= 2) {  // a busy machine may not run the sampler for long
    FrequencySampler sampler({}, 1'000'000, -1, tree.roots());
    std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
    sampler.stop();
    seen = sampler.uncore().contains("package_00_die_00");
    CHECK((!seen || sampler.uncore().at("package_00_die_00").front() == 2400000));
  }
  CHECK(seen);
}

TEST_CASE("frequencies are sampled from another socket, else from a core without a thread, else from none") {
  const auto core = [](int number, int package) { return CoreInfo{number, 0, package, {number, number + 8}, true}; };
  std::vector<CoreInfo> cores = {core(0, 0), core(1, 0), core(2, 1), core(3, 1)};
  CHECK(sampling_core(cores, {0}) == 2);
  CHECK(sampling_core(cores, {0, 11}) == 1);  // 11 is a processing unit of core 3
  CHECK(sampling_core(cores, {0, 1, 2, 3}) == -1);
  cores[2].allowed = false;
  CHECK(sampling_core(cores, {0}) == 3);
}

TEST_CASE("a trace holds every core of the machine, whatever the threads' cores are") {
  FakeTree tree;
  const auto& cores = Machine::here().cores();
  for (const auto& core : cores) {
    tree.add("sys/devices/system/cpu/cpu" + std::to_string(core.number) + "/cpufreq/scaling_cur_freq", "2000000");
  }
  PhaseObserver observer({cores.front().number}, {"frequency_trace"}, -1, tree.roots());
  observer.start();
  observer.stop();
  const json observed = observer.result();
  CHECK(observer.sampling_disturbs());
  CHECK(observed["frequency_khz"].size() == 1);
  for (const auto& core : cores) {
    CHECK(observed["frequency_trace"].contains(std::to_string(core.number)));
  }
}

TEST_CASE("events of a processor are found by its vendor, family and model") {
  const auto x86 = [](const char* vendor, const char* family, const char* model) {
    return processor_events({{"vendor_id", vendor}, {"cpu family", family}, {"model", model}});
  };
  const auto henri = x86("GenuineIntel", "6", "85");  // Xeon Gold 6140
  REQUIRE(henri.memory_stalls.size() == 2);
  CHECK(names_of(henri.memory_stalls) == "CYCLE_ACTIVITY.STALLS_MEM_ANY + EXE_ACTIVITY.BOUND_ON_STORES");
  CHECK(henri.memory_stalls.front().config == 0x140014a3);
  CHECK(henri.memory_stalls.back().config == 0x40a6);
  CHECK(x86("GenuineIntel", "6", "106").memory_stalls.back().config == 0x020040a6);  // Ice Lake
  CHECK(henri.l1_misses->config == 0x0151);
  CHECK(henri.l2_misses->config == 0x3f24);
  CHECK(x86("GenuineIntel", "6", "79").memory_stalls.front().config == 0x060006a3);
  CHECK(x86("GenuineIntel", "6", "143").memory_stalls.front().config == 0x050021a6);
  CHECK(x86("GenuineIntel", "6", "42").memory_stalls.empty());  // Sandy Bridge
  CHECK(x86("GenuineIntel", "6", "42").l1_misses->config == 0x0151);
  CHECK(x86("AuthenticAMD", "25", "17").memory_stalls.front().config == 0xa2d6);
  const auto zen_3 = x86("AuthenticAMD", "25", "1");
  CHECK(zen_3.memory_stalls.empty());
  CHECK(zen_3.l1_misses->config == 0x5f43);
  CHECK_FALSE(x86("AuthenticAMD", "23", "49").l1_misses.has_value());  // Zen 2
  CHECK(zen_3.l2_misses->config == 0x0864);
  CHECK(processor_events({{"CPU implementer", "0x41"}}).memory_stalls.front().config == 0x4005);
  CHECK(processor_events({}).memory_stalls.empty());
}

TEST_CASE("the middle of the samples is taken") {
  CHECK(median_khz({5, 1, 3}) == 3);
  CHECK_FALSE(median_khz({}).has_value());
}

TEST_CASE("processor state is read from cpufreq and intel_pstate") {
  FakeTree tree;
  const std::string cpu = "sys/devices/system/cpu/";
  tree.add("proc/cpuinfo", "model name\t: Test CPU\nmicrocode\t: 0x1\nflags\t: fpu")
      .add(cpu + "online", "0-1")
      .add(cpu + "smt/active", "1")
      .add(cpu + "intel_pstate/no_turbo", "1")
      .add(cpu + "cpu0/cpufreq/scaling_governor", "performance")
      .add(cpu + "cpu1/cpufreq/scaling_governor", "powersave")
      .add(cpu + "cpu0/cpufreq/cpuinfo_max_freq", "3500000")
      .add(cpu + "cpu0/cpufreq/scaling_cur_freq", "2100000");
  const auto state = processor_state(tree.roots());
  CHECK(state["cpu_model"] == "Test CPU");
  CHECK(state["smt"] == true);
  CHECK(state["turbo"] == false);
  CHECK(state["governor"] == json{{"performance", "0"}, {"powersave", "1"}});
  CHECK(state["frequency"]["max_khz"] == 3500000);
  CHECK(state["frequency"]["now_khz"] == json{{"0", 2100000}});
  CHECK(state["frequency"]["base_khz"].contains("unknown"));
}

TEST_CASE("an empty machine knows nothing and says so everywhere") {
  FakeTree tree;
  const auto roots = tree.roots();
  for (const auto& part : {load_state(roots), processor_state(roots), memory_state(roots), cgroup_state(roots)}) {
    check_known_or_reasoned(part, "state");
  }
  CHECK(load_state(roots)["load"].contains("unknown"));
  CHECK(processor_state(roots)["turbo"].contains("unknown"));
  CHECK(memory_state(roots)["transparent_huge_pages"].contains("unknown"));
  CHECK(cgroup_state(roots)["cpu_max"].contains("unknown"));
  CHECK(nic_state(roots).empty());
}

TEST_CASE("huge page settings are read") {
  FakeTree tree;
  tree.add("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never")
      .add("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8")
      .add("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "5")
      .add("proc/meminfo", "MemTotal: 4 kB");
  const auto state = memory_state(tree.roots());
  CHECK(state["transparent_huge_pages"] == "madvise");
  CHECK(state["reserved_huge_pages"]["2048kB"] == json{{"total", 8}, {"free", 5}});
  CHECK(state["memory_kernel"] == 4096);
}

TEST_CASE("bytes to memory are summed over the caches, and one silent cache silences all") {
  FakeTree tree;
  CHECK(bandwidth_refusal(tree.roots()).find("mount") != std::string::npos);
  tree.add("sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes", "1000")
      .add("sys/fs/resctrl/mon_data/mon_L3_00/mbm_local_bytes", "700")
      .add("sys/fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes", "10")
      .add("sys/fs/resctrl/mon_data/mon_L3_01/mbm_local_bytes", "7");
  REQUIRE(memory_bytes(tree.roots()).has_value());
  CHECK(memory_bytes(tree.roots())->total == 1010);
  CHECK(memory_bytes(tree.roots())->local == 707);
  CHECK(bandwidth_refusal(tree.roots()).empty());
  tree.add("sys/fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes", "Unavailable");
  CHECK_FALSE(memory_bytes(tree.roots()).has_value());
  CHECK_FALSE(bandwidth_refusal(tree.roots()).empty());
}

TEST_CASE("only the telling options of the kernel's command line are recorded") {
  FakeTree tree;
  tree.add("proc/cmdline", "root=/dev/vda password=secret isolcpus=2-3 mitigations=off quiet");
  CHECK(platform_state(tree.roots())["kernel_options"] == json{"isolcpus=2-3", "mitigations=off"});
}

TEST_CASE("the uncore's frequency limits are read per package") {
  FakeTree tree;
  const std::string die = "sys/devices/system/cpu/intel_uncore_frequency/package_00_die_00/";
  tree.add(die + "min_freq_khz", "1200000").add(die + "max_freq_khz", "2400000");
  const auto uncore = processor_state(tree.roots())["uncore"];
  CHECK(uncore["package_00_die_00"]["min_khz"] == 1200000);
  CHECK(uncore["package_00_die_00"]["max_khz"] == 2400000);
  CHECK(uncore["package_00_die_00"]["now_khz"].contains("unknown"));
}

TEST_CASE("a NIC is described with its node, speed and link; interfaces without a device are left out") {
  FakeTree tree;
  const std::string nic = "sys/class/net/ib0/";
  tree.add("sys/class/net/lo/operstate", "unknown")
      .add(nic + "operstate", "up")
      .add(nic + "speed", "100000")
      .add(nic + "device/numa_node", "1")
      .add(nic + "device/current_link_speed", "16.0 GT/s PCIe")
      .add(nic + "device/current_link_width", "16")
      .link(nic + "device/driver", "../../bus/pci/drivers/mlx5_core")
      .add("sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)")
      .add("sys/class/infiniband/mlx5_0/device/numa_node", "-1");
  const auto nics = nic_state(tree.roots());
  REQUIRE(nics.size() == 2);
  CHECK(nics[0]["name"] == "ib0");
  CHECK(nics[0]["driver"] == "mlx5_core");
  CHECK(nics[0]["mbit_per_s"] == 100000);
  CHECK(nics[0]["numa_node"] == 1);
  CHECK(nics[0]["link"] == "16.0 GT/s PCIe x16");
  CHECK(nics[1]["kind"] == "openfabrics");
  CHECK(nics[1]["rate"] == "100 Gb/sec (4X EDR)");
  CHECK(nics[1]["numa_node"]["unknown"] == "the firmware does not say its NUMA node");
}
