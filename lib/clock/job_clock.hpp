// The clocks of a job's processes: who shares one, how far they are apart, and leaving at one instant.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/host_clock.hpp"
#include "c_interface.hpp"
#include "clock/correction.hpp"
#include "clock/tree.hpp"

namespace elbowroom::clock {

// How this process reaches the others; both throw Unreachable.
struct Peers {
  int rank = 0;
  int size = 1;
  std::function<void(int to, const void* bytes, std::size_t count)> send;
  std::function<void(int from, void* bytes, std::size_t count)> receive;
};

struct Unreachable : c_interface::Refusal {
  explicit Unreachable(const std::string& sentence) : Refusal(ECOMM, sentence) {}
};

// Clocks that cannot be compared: they step all the time, or no deadline is ever met.
struct Unsteady : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A clock of this process, and what tells whether another process has the same: equal names, the same clock.
struct Source {
  std::string name;
  HostClock calibration;
  std::function<std::int64_t()> now;  // of tests; empty: that of the calibration
};

// The best clock that there is, or one of the kernel's: CLOCK_MONOTONIC_RAW, or CLOCK_MONOTONIC, which NTP steers.
enum class Wanted { best, raw, steered };

HostClock calibration_of(Wanted wanted);

// This host's clock: boot identifier and, where the kernel's clock is read, time namespace.
Source source_of_host(Wanted wanted);

// What a barrier was left with.
struct Left {
  SyncPoint point;
  std::int64_t late = 0;  // ns after the deadline
};

class JobClock {
 public:
  // Collective: learns the names of all processes' clocks; those that share one take over the calibration of its first.
  JobClock(Peers peers, Source source);

  SyncPoint synchronise();   // collective
  Left barrier();            // collective
  bool due(double seconds);  // collective
  Corrected now() const { return reference_at(local()); }
  std::int64_t local() const { return source_.now ? source_.now() : source_.calibration.now(); }
  bool synchronised() const { return !history_.empty(); }
  int clocks() const { return static_cast<int>(leaders_.size()); }
  bool counter() const { return source_.calibration.counter; }
  const HostClock& calibration() const { return source_.calibration; }

 private:
  struct Message;
  void gather_names();
  void share_calibration();
  std::vector<int> everybody() const;
  void tell(const std::vector<int>& ranks, void* bytes, std::size_t count);
  Exchange exchange_with(int rank);
  Message answered(int rank);
  bool ask(int rank);
  bool answer(int rank);
  std::int64_t reported(std::int64_t own);
  std::int64_t agreed(std::int64_t own);
  bool meet_all();
  std::vector<SyncPoint> with(const SyncPoint& point) const;
  Corrected reference_at(std::int64_t local) const;
  std::int64_t local_of(std::int64_t reference) const;

  Peers peers_;
  Source source_;
  std::vector<int> leaders_;  // the first rank with each clock; that of clock 0 is rank 0
  std::vector<int> others_;   // ranks that share this one's clock, in order
  int own_ = 0;               // this rank's clock, as a number in leaders_
  SyncPoint own_point_;       // of this clock, as it was found last
  std::vector<SyncPoint> history_;
  Correction correction_;
  static constexpr std::int64_t kWindow = 200'000;
  std::int64_t window_ = kWindow;  // ns between announcing a deadline and it, as rank 0 has it
  int silent_ = 0;                 // calls of due() that send nothing,
  int let_pass_ = 0;               // of these that were told last,
  std::int64_t compared_at_ = 0;   // when that was, ns, local
};

}  // namespace elbowroom::clock
