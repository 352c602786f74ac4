// Counters of the calling thread by perf_event_open(2).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace elbowroom {

// Why an event cannot be opened, in words with the permission that would allow it. `paranoid` is the value of
// /proc/sys/kernel/perf_event_paranoid, `error` an errno, `hypervisor` whether the processor says it is virtual.
std::string counter_reason(int error, int paranoid, bool hypervisor);

std::string counter_reason_here(int error);  // on this machine

// What the kernel says of a counter: events, and the times in which it was wanted and in which it had a register.
struct CounterReading {
  std::uint64_t value, enabled, running;

  // Scaled up where it shared its register with others; nothing where it never had one.
  std::optional<double> scaled() const;
  // Nothing where it shared its register: of a few microseconds a scaled count says nothing.
  std::optional<double> whole() const;
};

// Counts one event for the thread that made it, from then on.
class Counter {
 public:
  // `type` and `config` as in perf_event_attr. Kernel code is counted when permitted (always for software events).
  Counter(std::uint32_t type, std::uint64_t config, bool with_kernel);
  ~Counter();
  Counter(Counter&& other) noexcept;
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  bool works() const { return descriptor_ >= 0; }
  int error() const { return error_; }  // errno when it does not
  // Nothing when it does not work; else CounterReading::scaled and CounterReading::whole.
  std::optional<double> read() const;
  std::optional<double> read_whole() const;

 private:
  int descriptor_ = -1;
  int error_ = 0;
};

// cycles, instructions and last-level cache misses of the calling thread, user code only.
class ThreadCounters {
 public:
  ThreadCounters();
  std::map<std::string, double> read() const;  // those that work
  std::string reason() const;                  // why none works; empty when one does

 private:
  std::map<std::string, Counter> counters_;
};

// Migrations of the calling thread between processing units, by the kernel's count (needs to count kernel code).
Counter migration_counter();

}  // namespace elbowroom
