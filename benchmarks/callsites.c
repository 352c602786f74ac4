/* What profilers of call sites cost (mpiP and others): for each MPI call the stack is walked, the call site is looked up
 * in a hash table, and its time is added. Preloaded by benchmarks/profile_cost.py; nothing is written. */
#include <execinfo.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { kSites = 4096, kDepth = 4, kSkipped = 2 };

struct Site {
  void* address;
  int call;
  uint64_t count;
  double seconds, least, most;
};

static struct Site sites[kSites];

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void add(int call, double seconds) {
  void* stack[kDepth];
  const int depth = backtrace(stack, kDepth);
  void* const address = depth > kSkipped ? stack[kSkipped] : NULL;
  size_t place = ((uintptr_t)address * 31 + (size_t)call) % kSites;
  while (sites[place].count != 0 && (sites[place].address != address || sites[place].call != call)) {
    place = (place + 1) % kSites;
  }
  struct Site* const site = &sites[place];
  site->least = site->count == 0 || seconds < site->least ? seconds : site->least;
  site->most = seconds > site->most ? seconds : site->most;
  site->address = address;
  site->call = call;
  site->count += 1;
  site->seconds += seconds;
}

#define WRAP(number, name, parameters, arguments) \
  int MPI_##name parameters {                     \
    const double begun = now();                   \
    const int result = PMPI_##name arguments;     \
    add(number, now() - begun);                   \
    return result;                                \
  }

WRAP(0, Comm_rank, (MPI_Comm comm, int* rank), (comm, rank))
WRAP(1, Send, (const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm),
     (data, count, type, to, tag, comm))
WRAP(2, Recv, (void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status),
     (data, count, type, from, tag, comm, status))
WRAP(3, Isend, (const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request),
     (data, count, type, to, tag, comm, request))
WRAP(4, Irecv, (void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request),
     (data, count, type, from, tag, comm, request))
WRAP(5, Wait, (MPI_Request * request, MPI_Status* status), (request, status))
WRAP(6, Waitall, (int count, MPI_Request* requests, MPI_Status* statuses), (count, requests, statuses))
WRAP(7, Allreduce, (const void* in, void* out, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm comm),
     (in, out, count, type, operation, comm))
WRAP(8, Sendrecv,
     (const void* out, int out_count, MPI_Datatype out_type, int to, int out_tag, void* in, int in_count,
      MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status* status),
     (out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status))
