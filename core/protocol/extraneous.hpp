// Extraneous memory accesses between messages (Tan and Jarvis 2012): what is asked for, in which order it is measured,
// and what the readings of the two ranks' clocks say. Nothing here needs MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace elbowroom {

struct Placement;
struct Request;
struct Site;

// Who touches memory: the ranks between two messages, or threads on other cores all the while.
enum class Who { none, sender, receiver, both, bystanders };

// What is timed of a message: from the later of both calls to the end of the receive, or one rank's call by the clock or
// by the CPU time of its thread (the paper's "virtual time").
enum class Timing { one_way, receive, send, receive_cpu, send_cpu };

// A window of sizes: first, first + step ... bytes, `count` of them. For each, `exchanges` timed messages without
// accesses, then as many with them.
struct Extraneous {
  Who who = Who::none;
  bool writes = true;
  std::int64_t first = 0;  // bytes
  std::int64_t step = 1;   // bytes
  std::int64_t count = 1;
  bool different = false;  // the sender writes new contents before the accesses
  bool barrier = true;     // one parts the accesses from the message; else the sender waits by the clock
  std::int64_t exchanges = 16;
  Timing timing = Timing::one_way;
  bool processes = false;  // bystanders are processes of their own, not threads of rank 0

  // Both ranks call when they are ready, as programs do; else the sender waits until the receiver has called.
  bool of_calls() const { return timing != Timing::one_way; }
  bool by_cpu() const { return timing == Timing::receive_cpu || timing == Timing::send_cpu; }
  std::int64_t bytes(std::int64_t index) const { return first + index * step; }
  std::int64_t largest() const { return bytes(count - 1); }
  std::int64_t messages() const { return count * exchanges; }  // timed, without accesses; as many with them
  bool touches(int rank) const;                                // whether this rank does between its messages
};

// Consecutive messages of one kind. One more is sent before them, which is not timed: it finds what the block before
// left in the caches. Timed messages have slots: those without accesses first, each kind by rising size.
struct Block {
  std::int64_t size_index;
  bool accesses;
  std::size_t first_slot;
  std::size_t messages;
};

// Size by size, control and accesses in turn.
std::vector<Block> schedule(const Extraneous& extraneous);
// One block for each of these slots.
std::vector<Block> schedule_again(const Extraneous& extraneous, const std::vector<std::size_t>& slots);

// One rank's reading of the host's clock before and after its call of MPI, in ticks.
struct Stamp {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t cpu_ns = 0;  // of the thread meanwhile, where that is timed
  std::int64_t holds = 1;   // 0: what arrived is not what was sent
};

// Slots of messages that were sent before the receiver had called MPI_Recv.
std::vector<std::size_t> late_slots(const std::vector<Stamp>& sender, const std::vector<Stamp>& receiver);

// Microseconds of what is timed, for all slots.
std::vector<double> message_times(const std::vector<Stamp>& sender, const std::vector<Stamp>& receiver, double tick_ns,
                                  Timing timing);

// What messages in both directions tell of two clocks: the least difference of receiver's and sender's reading is the
// time of a message plus or minus the clocks' offset.
struct ClockCheck {
  double there_ns = 0;  // rank 1's reading minus rank 0's, least
  double back_ns = 0;   // rank 0's reading minus rank 1's, least
  double offset_ns() const { return (there_ns - back_ns) / 2; }
  double bound_ns() const { return (there_ns + back_ns) / 2; }
  // No message arrives before it is sent: then 0 is among the offsets that there may be.
  bool agrees() const { return there_ns >= 0 && back_ns >= 0; }
};

// Whether threads of this rank touch memory on other cores while messages pass.
bool has_bystanders(const Request& request, int rank);

// Checks of a request with extraneous accesses: what needs no machine, what concerns both ranks, what concerns one
// rank's host. All throw RequestError.
void check_extraneous(const Request& request);
void check_extraneous_job(const Request& request, const std::vector<std::string>& hosts);
void check_extraneous_site(const Request& request, const Placement& placement, const Site& site);

}  // namespace elbowroom
