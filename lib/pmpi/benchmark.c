/* What MPI calls take: ns of CPU time, the least of some batches (the argument, or 40). Two processes; rank 0 prints a JSON
 * object. Compile with -DFORTRAN to measure a call of the Fortran bindings, too. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kCalls = 1000, kPending = 1000 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int rank;
static int batches = 40;

static void trivial(void) {
  int result;
  MPI_Comm_rank(MPI_COMM_WORLD, &result);
}

static void ping_pong(void) {
  int message = 0;
  for (int turn = 0; turn < 2; ++turn) {
    if (rank == turn) {
      MPI_Send(&message, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD);
    } else {
      MPI_Recv(&message, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
}

static void exchange(void) {
  int out = 0, in;
  MPI_Request requests[2];
  MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&out, 1, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* A message to oneself: nobody is waited for. */
static void own(void) {
  int out = 0, in;
  MPI_Request request;
  MPI_Irecv(&in, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &request);
  MPI_Send(&out, 1, MPI_INT, 0, 3, MPI_COMM_SELF);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* A poll over requests of which none is complete. */
static MPI_Request pending[kPending];
static int received[kPending], indices[kPending]; /* MPI_Fint is an int */

static void poll(void) {
  int count;
  MPI_Testsome(kPending, pending, &count, indices, MPI_STATUSES_IGNORE);
}

#ifdef FORTRAN
/* The same by a binding of Fortran. */
static MPI_Fint handles[kPending], statuses[kPending * sizeof(MPI_Status) / sizeof(MPI_Fint)];
void mpi_testsome_(MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);

static void poll_by_fortran(void) {
  MPI_Fint pending_ones = kPending, some, error;
  mpi_testsome_(&pending_ones, handles, &some, indices, statuses, &error);
}
#endif

static double least(void (*calls)(void), int count) {
  double best = 1e18;
  for (int batch = 0; batch < batches; ++batch) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begun = now();
    for (int i = 0; i < kCalls; ++i) {
      calls();
    }
    const double took = (now() - begun) / kCalls / count;
    best = took < best ? took : best;
  }
  return best;
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (count > 1) {
    batches = atoi(words[1]);
  }
  const double one = least(trivial, 1), self = least(own, 3), pong = least(ping_pong, 2), both = least(exchange, 3);
  double polls[2] = {-1, -1};
  for (int i = 0; i < kPending; ++i) {
    MPI_Irecv(&received[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &pending[i]);
  }
  polls[0] = least(poll, 1);
#ifdef FORTRAN
  for (int i = 0; i < kPending; ++i) {
    handles[i] = MPI_Request_c2f(pending[i]);
  }
  polls[1] = least(poll_by_fortran, 1);
#endif
  for (int i = 0; i < kPending; ++i) {
    MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_SELF);
  }
  MPI_Waitall(kPending, pending, MPI_STATUSES_IGNORE);
  if (rank == 0) {
    printf(
        "{\"MPI_Comm_rank\": %.1f, \"message to oneself\": %.1f, \"ping-pong of 4 B\": %.1f, \"exchange of 4 B\": "
        "%.1f, \"MPI_Testsome, 1,000 pending\": %.1f",
        one, self, pong, both, polls[0]);
    if (polls[1] >= 0) {
      printf(", \"mpi_testsome of Fortran\": %.1f", polls[1]);
    }
    printf("}\n");
  }
  MPI_Finalize();
  return 0;
}
