// What a tool gets to know of a program's MPI calls: it defines these functions, and is linked with the shims.
//
// The shims (generated, one for each function of the installed mpi.h) call them on the thread that called MPI; a call that
// is made inside another one (Open MPI's and MPICH's Fortran bindings, callbacks) is not told. Inside a hook MPI is called
// by its PMPI names. Hooks are called without a lock, and throw nothing.
#pragma once

#include <cstdint>
#include <vector>

namespace elbowroom::pmpi {

constexpr int kNobody = -1;     // a call that concerns no one process
constexpr int kElsewhere = -2;  // a process that is not in MPI_COMM_WORLD: spawned, or of another job

// Communicators are numbered alike by all their members: MPI_COMM_WORLD 0, MPI_COMM_SELF 1. Ones whose number cannot be known
// (of processes that were spawned or connected) are kForeign, and their messages are not told.
constexpr std::uint32_t kForeign = 0xFFFFFFFF;

// What a call is about, by its arguments. Which fields have a meaning, its kind says (calls.hpp).
struct About {
  int peer = kNobody;  // rank in MPI_COMM_WORLD (destination, source, root, target) or kElsewhere
  std::uint32_t communicator = 0;
  std::uint64_t bytes = 0;  // that this process sends (of collectives: its part), or receives; of waits: requests
  int span = 0;             // of collectives: what tool_communicator said
};

// One end of a message. `sequence` counts the messages of a sender, receiver, communicator and tag from 1, alike on both
// sides (matching.hpp says what is guaranteed).
constexpr std::uint64_t kUnknownBytes = ~std::uint64_t{0};

struct Message {
  int peer;  // rank in MPI_COMM_WORLD; kElsewhere only for tools that do not match
  std::uint32_t communicator;
  int tag;
  std::uint32_t sequence;
  std::uint64_t bytes;  // kUnknownBytes only for tools that match: the other end says it
};

// When and where an operation was posted or started: `site` is the tool's number of the place.
struct Posting {
  std::uint64_t ns = 0;
  std::uint16_t site = 0;
};

// A nonblocking operation, or one start of a persistent one, of a known communicator: `call` posted or made it.
struct Interval {
  Posting posted{};  // what tool_posting said
  int call = 0;
  About about{};
};
enum class Ending { complete, cancelled, unknown };

// What a tool wants to know: numbers of messages (tool_sent, tool_received), for which both sides look up every message;
// operations from their posts to their completions (tool_completed).
extern const bool tool_matches;
extern const bool tool_times;

// This process among all of its job.
struct Place {
  int rank = 0;
  int ranks = 0;
  bool threads = false;      // several of them may call MPI at once
  bool spawned = false;      // the job was spawned by another one
  bool by_sessions = false;  // there is no MPI_COMM_WORLD (yet)
};

// Before the work of MPI_Init or MPI_Init_thread, whose begin and end are told if this returns true.
bool tool_starting();
// After it, or, where MPI is used by sessions, before the first communicator is made; once. Nothing else is told unless this
// returns true.
bool tool_started(const Place& place);
// MPI_Finalize begins, on all processes; MPI still works. Nothing is told after it.
void tool_finishing();
// No session is open, and MPI_Init was not called: the process may end now, or use MPI again.
void tool_paused();

// A call begins, and ends, on this thread. `call` is its number (calls.hpp), `caller` the address that it returns to, NULL if
// that is not known.
void tool_enter(int call, const About& about, const void* caller);
void tool_leave(int call, const About& about);
// A call was left by longjmp, some time ago.
void tool_left(int call);

// A message is about to be posted; one has come, and its receive is complete.
void tool_sent(const Message& message);
void tool_received(const Message& message);
// An operation is posted by the call that this thread is in, by `call`, or started, which `call` made: for Interval.
Posting tool_posting(int call, const About& about);
// An operation is complete, or nothing more will be heard of it (freed, MPI_Finalize); `got`: the message of a receive, with
// its sequence only if the tool matches, NULL where there is none.
void tool_completed(const Interval& interval, const Message* got, Ending ending);

// A communicator was made; `world`: ranks of MPI_COMM_WORLD that a process of it may name, of intercommunicators the others',
// kNobody for those of other jobs; `members`: of its own group, 0 where not all of them are of this job. The answer is in
// About::span of its collectives. MPI works.
int tool_communicator(const std::vector<int>& world, int members);

// All processes have left a barrier of MPI_COMM_WORLD, and are inside its call.
void tool_world_barrier();
// MPI_Pcontrol: the region of interest begins (level above 0) or ends (0).
void tool_region(int level);

}  // namespace elbowroom::pmpi
