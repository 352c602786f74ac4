#include "observe/observer.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "machine/machine.hpp"
#include "observe/counters.hpp"
#include "observe/frequency.hpp"
#include "observe/memory_bandwidth.hpp"
#include "observe/processor_events.hpp"

namespace elbowroom {
// Not of this file alone: the observer has members of these types.
namespace observation {

// What the kernel has counted so far.
struct Counts {
  std::map<int, double> steal;
  std::map<int, std::uint64_t> interrupts;
  std::map<int, std::int64_t> khz;
  std::optional<MemoryBytes> memory;
};

// One thread that takes part: what it had counted when it joined, and what it left with.
struct Member {
  ThreadCounts before;
  Counter migrations = migration_counter();
  std::optional<ThreadCounters> counters;
};

}  // namespace observation

namespace {

using namespace observation;

using nlohmann::json;

constexpr std::int64_t kTraceInterval = 2'000'000;    // ns; the paper's frequency figures resolve some milliseconds
constexpr std::int64_t kDuringInterval = 20'000'000;  // ns; a few values per phase, without disturbing it

double ticks_per_second() { return static_cast<double>(sysconf(_SC_CLK_TCK)); }

// All processing units of the cores: an interrupt on the sibling disturbs as well.
std::vector<int> units_of(const std::vector<int>& cores) {
  std::set<int> units;
  for (const int number : cores) {
    if (const auto* core = Machine::here().core(number)) {
      units.insert(core->pus.begin(), core->pus.end());
    }
  }
  return {units.begin(), units.end()};
}

std::vector<int> every_core() {
  std::vector<int> numbers;
  for (const CoreInfo& core : Machine::here().cores()) {
    numbers.push_back(core.number);
  }
  return numbers;
}

Counts count_now(const std::vector<int>& cores, const SystemRoots& roots = {}) {
  Counts counts;
  counts.steal = parse_steal(read_text("/proc/stat").value_or(""), ticks_per_second());
  counts.interrupts = parse_interrupts(read_text("/proc/interrupts").value_or(""));
  counts.memory = memory_bytes();
  for (const int core : cores) {
    if (const auto khz = frequency_khz(core, roots)) {
      counts.khz[core] = *khz;
    }
  }
  return counts;
}

// Sum over the units of after - before; nothing when one of the units is missing.
template <typename Value>
std::optional<Value> growth(const std::map<int, Value>& before, const std::map<int, Value>& after,
                            const std::vector<int>& units) {
  Value sum{};
  for (const int unit : units) {
    const auto first = before.find(unit);
    const auto last = after.find(unit);
    if (first == before.end() || last == after.end()) {
      return std::nullopt;
    }
    sum += last->second - first->second;
  }
  return units.empty() ? std::nullopt : std::optional(sum);
}

json available(const std::string& refusal) {
  return refusal.empty() ? json{{"status", "ok"}} : json{{"status", "n/a"}, {"reason", refusal}};
}

std::string unless(bool works, const std::string& reason) { return works ? "" : reason; }

std::string pages_refusal() {
  try {
    Arena arena(1 << 16, Machine::here().nodes().front().number);
    static_cast<char*>(arena.data())[0] = 1;
    return arena.verify(1).unknown;
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

ThreadCounts this_thread_counts() {
  ThreadCounts counts;
  rusage usage{};
  if (getrusage(RUSAGE_THREAD, &usage) == 0) {
    counts.voluntary = usage.ru_nvcsw;
    counts.involuntary = usage.ru_nivcsw;
  }
  counts.core = sched_getcpu();
  return counts;
}

json observers_available() {
  std::vector<int> cores;
  for (const auto& core : Machine::here().cores()) {
    if (core.allowed) {
      cores.push_back(core.number);
    }
  }
  const auto counts = count_now({});
  json table;
  table["steal"] = available(unless(!counts.steal.empty(), "/proc/stat cannot be read"));
  table["interrupts"] = available(unless(!counts.interrupts.empty(), "/proc/interrupts cannot be read"));
  table["context_switches"] = available("");
  table["migrations"] = available("");
  table["migrations"]["source"] = migration_counter().works() ? "perf_event" : "core at start and end";
  table["load"] = available(
      unless(parse_loadavg(read_text("/proc/loadavg").value_or("")).has_value(), "/proc/loadavg cannot be read"));
  table["frequency"] = available(frequency_refusal(cores));
  table["counters"] = available(ThreadCounters().reason());
  table["memory_stalls"] = available(memory_stalls_refusal());
  if (const auto events = processor_events_here().memory_stalls; !events.empty()) {
    table["memory_stalls"]["event"] = names_of(events);
  }
  table["memory_bytes"] = available(bandwidth_refusal());
  table["pages"] = available(pages_refusal());
  return table;
}

struct PhaseObserver::Impl {
  std::vector<int> cores;
  std::set<std::string> wanted;
  int trace_core = -1;
  SystemRoots roots;
  std::vector<int> units;
  Counts before;
  Counts after;
  std::optional<double> load;
  std::optional<FrequencySampler> sampler;

  std::mutex mutex;  // guards what follows: threads join and leave by themselves
  std::map<std::thread::id, Member> members;
  long voluntary = 0;
  long involuntary = 0;
  double migrations = 0;
  bool joined = false;
  std::map<std::string, double> counters;

  json frequencies() const;
};

PhaseObserver::PhaseObserver(std::vector<int> cores, std::vector<std::string> wanted, int trace_core, SystemRoots roots)
    : impl_(std::make_unique<Impl>()) {
  impl_->units = units_of(cores);
  impl_->cores = std::move(cores);
  impl_->wanted = {wanted.begin(), wanted.end()};
  impl_->trace_core = trace_core;
  impl_->roots = std::move(roots);
}

PhaseObserver::~PhaseObserver() = default;

void PhaseObserver::start() {
  auto& self = *impl_;
  self.before = count_now(self.cores, self.roots);
  const bool trace = self.wanted.contains("frequency_trace");
  if ((trace || self.wanted.contains("frequency")) && !self.before.khz.empty()) {
    const int from = self.trace_core >= 0 ? self.trace_core : self.cores.back();
    self.sampler.emplace(trace ? every_core() : self.cores, trace ? kTraceInterval : kDuringInterval, from, self.roots);
  }
}

void PhaseObserver::stop() {
  auto& self = *impl_;
  if (self.sampler) {
    self.sampler->stop();
  }
  self.after = count_now(self.cores, self.roots);
  if (const auto load = parse_loadavg(read_text("/proc/loadavg").value_or(""))) {
    self.load = load->one;
  }
}

void PhaseObserver::join() {
  // Opened outside the lock: opening counters takes a while, and all threads join at once.
  Member member;
  if (impl_->wanted.contains("counters")) {
    member.counters.emplace();
  }
  member.before = this_thread_counts();
  const std::lock_guard lock(impl_->mutex);
  impl_->members.erase(std::this_thread::get_id());
  impl_->members.emplace(std::this_thread::get_id(), std::move(member));
}

void PhaseObserver::leave() {
  const auto now = this_thread_counts();
  auto& self = *impl_;
  const std::lock_guard lock(self.mutex);
  const auto entry = self.members.find(std::this_thread::get_id());
  if (entry == self.members.end()) {
    return;
  }
  const auto& member = entry->second;
  self.joined = true;
  self.voluntary += now.voluntary - member.before.voluntary;
  self.involuntary += now.involuntary - member.before.involuntary;
  // Without the kernel's count, a thread that ends elsewhere moved at least once.
  self.migrations += member.migrations.read().value_or(now.core != member.before.core ? 1 : 0);
  if (member.counters) {
    for (const auto& [name, value] : member.counters->read()) {
      self.counters[name] += value;
    }
  }
  self.members.erase(entry);
}

bool PhaseObserver::sampling_disturbs() const { return impl_->sampler.has_value() && impl_->trace_core < 0; }

json PhaseObserver::Impl::frequencies() const {
  json table = json::object();
  for (const auto& [core, khz] : before.khz) {
    const auto last = after.khz.find(core);
    std::optional<std::int64_t> during;
    if (sampler && sampler->samples().contains(core)) {
      during = median_khz(sampler->samples().at(core));
    }
    table[std::to_string(core)] = {khz, during ? json(*during) : json(),
                                   last == after.khz.end() ? json() : json(last->second)};
  }
  return table;
}

json PhaseObserver::result() const {
  const auto& self = *impl_;
  json observed = json::object();
  if (const auto steal = growth(self.before.steal, self.after.steal, self.units)) {
    observed["steal_s"] = *steal;
  }
  if (const auto interrupts = growth(self.before.interrupts, self.after.interrupts, self.units)) {
    observed["interrupts"] = *interrupts;
  }
  if (self.load) {
    observed["load"] = *self.load;
  }
  if (self.joined) {
    observed["context_switches"] = {{"voluntary", self.voluntary}, {"involuntary", self.involuntary}};
    observed["migrations"] = static_cast<std::int64_t>(self.migrations);
  }
  if (self.before.memory && self.after.memory) {
    observed["memory_bytes"] = {{"total", self.after.memory->total - self.before.memory->total},
                                {"local", self.after.memory->local - self.before.memory->local}};
  }
  if (!self.counters.empty()) {
    observed["counters"] = self.counters;
  }
  if (!self.before.khz.empty()) {
    observed["frequency_khz"] = self.frequencies();
  }
  if (self.sampler && self.wanted.contains("frequency_trace")) {
    observed["frequency_trace"] = {{"interval_ns", self.sampler->interval_ns()}, {"uncore", self.sampler->uncore()}};
    for (const auto& [core, samples] : self.sampler->samples()) {
      observed["frequency_trace"][std::to_string(core)] = samples;
    }
  }
  return observed;
}

}  // namespace elbowroom
