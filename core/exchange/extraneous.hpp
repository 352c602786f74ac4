// One-way messages from rank 0 to rank 1 on one host with and without extraneous accesses (docs/reference/protocol.md).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "caches/counted.hpp"
#include "exchange/job.hpp"
#include "observe/observer.hpp"
#include "protocol/bystanders.hpp"
#include "protocol/extraneous.hpp"
#include "protocol/request.hpp"
#include "protocol/touched_array.hpp"

namespace elbowroom {

// What rank 0 knows of one of the two kinds of messages when the window is over.
struct OneWayReport {
  std::vector<double> times;  // us, by slot
  double seconds = 0;         // of all its blocks, accesses included
  std::int64_t late = 0;      // times that a message was sent again, the receiver not having called MPI_Recv before
  std::set<std::string> flags;
};

// What the processor counted of one message: of each side (sender, receiver), kind, and size.
struct CountedSet {
  using Sizes = std::vector<MissCounters::Counts>;
  std::array<std::array<Sizes, 2>, 2> sides;
  std::array<std::string, 3> reasons;  // why an event is not counted
};

struct CountedMisses {
  CountedSet misses;  // miss_events
  CountedSet work;    // work_events
};

struct ExtraneousReport {
  std::array<OneWayReport, 2> kinds;  // without accesses, with them
  ClockCheck clocks;
  CountedMisses misses;
};

// A window is measured without a word between the ranks besides the messages and the barrier; what rank 1's clock said
// goes to rank 0 after it.
class ExtraneousExchange {
 public:
  ExtraneousExchange(const Job& job, std::function<void(int)> bind);

  // `message` is a buffer of the request's size. Allocates and touches what will be accessed; throws std::runtime_error.
  void use(const Request& request, const Placement& placement, char* message);
  ExtraneousReport lead(PhaseObserver& observer);  // rank 0
  void follow(PhaseObserver& observer);            // rank 1

  std::size_t bytes_on(int node) const;  // that the next use() gives back
  std::vector<PageReport> own_pages() const;
  std::vector<PageReport> bystanders_pages() const { return bystanders_.pages(); }

 private:
  void begin(PhaseObserver& observer);
  ClockCheck check_clocks() const;
  void calibrate();
  void warm_up();
  void run(const Block& block);
  bool faulty(const Block& block, std::size_t slot) const;
  Stamp exchange(const Block& block, bool wrong);
  void send(const Block& block, bool corrupt, Stamp& stamp);
  void receive(const Block& block, bool late, Stamp& stamp);
  std::int64_t cpu_ns() const;
  void touch(const Block& block);
  void wait_for_receiver(const Block& block) const;
  void tell_stamps() const;
  std::vector<Stamp> hear_stamps() const;
  void order(const std::vector<std::size_t>& again) const;
  std::vector<std::size_t> ordered() const;
  std::vector<Stamp> measure(ExtraneousReport& report);
  void judge(const std::vector<Stamp>& received, ExtraneousReport& report);
  void count(const CountedEvents& events, CountedSet& counted);
  void count_all(CountedMisses& misses);

  const Job& job_;
  Bystanders bystanders_;
  std::optional<TouchedArray> array_;
  Request request_;
  Extraneous extraneous_;
  char* message_ = nullptr;
  std::vector<Stamp> stamps_;                 // of this rank, by slot
  std::vector<std::int64_t> receiver_ticks_;  // by size: accesses of the receiver
  double patience_ns_ = 0;                    // that the sender waits besides
  std::int64_t sent_ = 0;                     // tick of the last message, or barrier
  std::uint64_t seed_ = 0;
  bool holds_ = true;  // what is not of one message: its every byte at the beginning, and the arrays
  bool overlapped_ = true;
  std::array<double, 2> seconds_{};
  std::optional<MessageCounter> counter_;  // while misses are counted: nothing is timed then
};

}  // namespace elbowroom
