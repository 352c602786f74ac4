// What the machine did while a phase ran: counts read before and after, and optional traces.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace elbowroom {

// Which observers work on this machine: {name: {"status": "ok"} or {"status": "n/a", "reason": "..."}}.
// Names: steal, interrupts, context_switches, migrations, load, frequency, counters, pages.
nlohmann::json observers_available();

// Machine state that a run records: load, steal, governor, turbo, SMT, frequencies, transparent and reserved huge
// pages, cgroup limits, cpuset, NICs with node and link, IOMMU, hypervisor; each value or "unknown: reason".
nlohmann::json machine_state();

// One phase's observer. Threads that take part register themselves from within (per-thread counts); start() and
// stop() are called by one thread, outside the measured window. result() has the form of docs/protocol.md,
// "observed"; what does not work is absent.
class PhaseObserver {
 public:
  // `wanted` may hold "frequency_trace" (a sampling thread on a core given by `trace_core`) and "counters".
  PhaseObserver(std::vector<int> cores, std::vector<std::string> wanted, int trace_core);
  ~PhaseObserver();
  void start();
  void stop();
  nlohmann::json result() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Counts of the calling thread: context switches (getrusage RUSAGE_THREAD) and the core it runs on.
struct ThreadCounts {
  long voluntary = 0;
  long involuntary = 0;
  int core = -1;
};
ThreadCounts this_thread_counts();

}  // namespace elbowroom
