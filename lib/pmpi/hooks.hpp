// What a tool gets to know of a program's MPI calls: it defines these functions, and is linked with the shims.
//
// The shims (generated, one for each function of the installed mpi.h) call them on the thread that called MPI; a call that
// is made inside another one (Open MPI's and MPICH's Fortran bindings, callbacks) is not told. Inside a hook MPI is called
// by its PMPI names.
#pragma once

#include <cstdint>

namespace elbowroom::pmpi {

constexpr int kNobody = -1;  // a call that concerns no one process

// Communicators are numbered alike by all their members: MPI_COMM_WORLD 0, MPI_COMM_SELF 1. Ones whose number cannot be known
// (of processes that were spawned or connected) are kForeign, and their messages are not told.
constexpr std::uint32_t kForeign = 0xFFFFFFFF;

// What a call is about, by its arguments. Which fields have a meaning, its kind says (calls.hpp).
struct About {
  int peer = kNobody;  // rank in MPI_COMM_WORLD: destination, source, root, target
  std::uint32_t communicator = 0;
  std::uint64_t bytes = 0;  // that this process sends (of collectives: its part), or receives; of waits: requests
};

// One end of a message. `sequence` counts the messages of a sender, receiver, communicator and tag from 1, alike on both
// sides (matching.hpp says what is guaranteed).
struct Message {
  int peer;  // rank in MPI_COMM_WORLD
  std::uint32_t communicator;
  int tag;
  std::uint32_t sequence;
  std::uint64_t bytes;
};

// Before the work of MPI_Init or MPI_Init_thread, whose begin and end are told if this returns true; and after it:
// nothing else is told unless this returns true.
bool tool_starting();
bool tool_started();
// MPI_Finalize begins, on all processes; MPI still works. Nothing is told after it.
void tool_finishing();

// A call begins, and ends, on this thread. `call` is its number (calls.hpp).
void tool_enter(int call, const About& about);
void tool_leave(int call, const About& about);

// A message is about to be posted; one has come, and its receive is complete.
void tool_sent(const Message& message);
void tool_received(const Message& message);
// A nonblocking or persistent operation was posted as `request`; a request is complete. For tools that want to know
// how long a transfer may have taken.
void tool_posted(std::uintptr_t request, const About& about);
void tool_completed(std::uintptr_t request);

// All processes have left a barrier of MPI_COMM_WORLD, and are inside its call.
void tool_world_barrier();
// MPI_Pcontrol: the region of interest begins (level above 0) or ends (0).
void tool_region(int level);

}  // namespace elbowroom::pmpi
