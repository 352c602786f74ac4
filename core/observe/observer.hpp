// What the machine did while a phase ran: counts read before and after, and optional traces.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/system_files.hpp"

namespace elbowroom {

// Which observers work on this machine: {name: {"status": "ok"} or {"status": "n/a", "reason": "..."}}.
// Names: steal, interrupts, context_switches, migrations, load, frequency, counters,
// memory_stalls, memory_bytes, pages.
nlohmann::json observers_available();

// Machine state that a run records: load, steal, governor, turbo, SMT, frequencies, transparent and reserved huge
// pages, cgroup limits, cpuset, NICs with node and link, IOMMU, hypervisor; each value or "unknown: reason".
nlohmann::json machine_state();

// One phase's observer. Threads that take part call join() before and leave() after their part of the phase, outside
// the measured window: they give context switches, migrations and counters, which are absent when no thread joined.
// start() and stop() are called by one thread, outside the measured window. result() has the form of
// docs/reference/protocol.md, "observed"; what does not work is absent. Every core named by `cores` counts with all its
// processing units.
class PhaseObserver {
 public:
  // `wanted` may hold "frequency" (before, during, after), "frequency_trace" (of all cores of the machine and of the
  // uncore, every 2 ms) and "counters". During and the trace come from a sampling thread on the core `trace_core`; < 0:
  // there is none without a thread, so it samples from the last of `cores`, which it disturbs.
  PhaseObserver(std::vector<int> cores, std::vector<std::string> wanted, int trace_core, SystemRoots roots = {});
  ~PhaseObserver();
  PhaseObserver(const PhaseObserver&) = delete;
  PhaseObserver& operator=(const PhaseObserver&) = delete;
  void start();
  void stop();
  void join();   // called by a thread that takes part
  void leave();  // called by the same thread
  bool sampling_disturbs() const;
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
