#include "observe/counters.hpp"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/system_files.hpp"

namespace elbowroom {
namespace {

struct Event {
  const char* name;
  std::uint64_t config;
};

constexpr std::array kEvents{Event{"cycles", PERF_COUNT_HW_CPU_CYCLES},
                             Event{"instructions", PERF_COUNT_HW_INSTRUCTIONS},
                             Event{"llc_misses", PERF_COUNT_HW_CACHE_MISSES}};

}  // namespace

std::string counter_reason(int error, int paranoid, bool hypervisor) {
  if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV) {
    return hypervisor ? "no hardware counters (virtual machine)" : "this processor or kernel has no such counter";
  }
  if (error == EACCES || error == EPERM) {
    return fmt::format(
        "not permitted: perf_event_paranoid is {}; it takes the capability CAP_PERFMON or, as root, "
        "sysctl kernel.perf_event_paranoid=1 (in a container also the perf_event_open system call)",
        paranoid);
  }
  if (error == ENOSYS) {
    return "the kernel has no perf_event_open";
  }
  return fmt::format("perf_event_open: {}", std::strerror(error));
}

std::string counter_reason_here(int error) {
  const auto paranoid = read_number("/proc/sys/kernel/perf_event_paranoid").value_or(-1);
  const auto flags = parse_cpuinfo(read_text("/proc/cpuinfo").value_or(""))["flags"];
  return counter_reason(error, static_cast<int>(paranoid), flags.find("hypervisor") != std::string::npos);
}

Counter::Counter(std::uint32_t type, std::uint64_t config, bool with_kernel) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = type;
  attributes.config = config;
  attributes.exclude_kernel = with_kernel ? 0 : 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  descriptor_ = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  error_ = descriptor_ < 0 ? errno : 0;
}

Counter::~Counter() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

Counter::Counter(Counter&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), error_(other.error_) {}

std::optional<double> CounterReading::scaled() const {
  if (running == 0) {
    return std::nullopt;
  }
  return static_cast<double>(value) * static_cast<double>(enabled) / static_cast<double>(running);
}

std::optional<double> CounterReading::whole() const {
  return running > 0 && running == enabled ? std::optional(static_cast<double>(value)) : std::nullopt;
}

namespace {

std::optional<CounterReading> reading_of(int descriptor) {
  CounterReading sample{};
  if (descriptor < 0 || ::read(descriptor, &sample, sizeof sample) != sizeof sample) {
    return std::nullopt;
  }
  return sample;
}

}  // namespace

std::optional<double> Counter::read_whole() const {
  const auto sample = reading_of(descriptor_);
  return sample ? sample->whole() : std::nullopt;
}

std::optional<double> Counter::read() const {
  const auto sample = reading_of(descriptor_);
  return sample ? sample->scaled() : std::nullopt;
}

ThreadCounters::ThreadCounters() {
  for (const auto& event : kEvents) {
    counters_.emplace(event.name, Counter(PERF_TYPE_HARDWARE, event.config, false));
  }
}

std::map<std::string, double> ThreadCounters::read() const {
  std::map<std::string, double> values;
  for (const auto& [name, counter] : counters_) {
    if (const auto value = counter.read()) {
      values[name] = *value;
    }
  }
  return values;
}

std::string ThreadCounters::reason() const {
  int error = 0;
  for (const auto& [name, counter] : counters_) {
    if (counter.works()) {
      return "";
    }
    error = counter.error();
  }
  return counter_reason_here(error);
}

Counter migration_counter() { return {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, true}; }

}  // namespace elbowroom
