/* Steps as those of conjugate gradients on two ranks, in turns with calls that tools see (MPI_*) and the same ones past them
 * (PMPI_*): `profile_cost SECONDS`. Both kinds do the same work in one process, milliseconds apart, so that a core that is
 * slower for a while is slower for both. Rank 0 prints, for each turn, the seconds of a block with MPI_* calls and of one
 * with PMPI_* calls, and first how many calls there are in a block. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kSteps = 5, kWords = 512, kCallsOfStep = 5, kElements = 680, kMostTurns = 1000000 };
static const double kCompute = 0.8e-3; /* s between two exchanges */

typedef struct {
  int (*irecv)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  int (*isend)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  int (*waitall)(int, MPI_Request*, MPI_Status*);
  int (*allreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
} Calls;
static const Calls seen = {MPI_Irecv, MPI_Isend, MPI_Waitall, MPI_Allreduce};
static const Calls unseen = {PMPI_Irecv, PMPI_Isend, PMPI_Waitall, PMPI_Allreduce};

static int rank;
static long sweeps;
static double a[kElements], b[kElements], c[kElements], out[kWords], in[kWords];

static void compute(long count) {
  for (long sweep = 0; sweep < count; sweep++) {
    for (int i = 0; i < kElements; i++) a[i] = b[i] + 0.5 * c[i];
    __asm__ volatile("" : : "r"(a) : "memory");
  }
}

/* Enough work of one core for kCompute, the same for all ranks and steps. */
static void calibrate(void) {
  const long trial = 20000;
  double best = 1;
  for (int i = 0; i < 10; i++) {
    const double start = MPI_Wtime();
    compute(trial);
    const double took = MPI_Wtime() - start;
    best = took < best ? took : best;
  }
  sweeps = (long)(kCompute / best * (double)trial) + 1;
  PMPI_Bcast(&sweeps, 1, MPI_LONG, 0, MPI_COMM_WORLD);
}

static double block(const Calls* by) {
  const double start = MPI_Wtime();
  for (int step = 0; step < kSteps; step++) {
    MPI_Request requests[2];
    double own = a[step], sum;
    compute(sweeps);
    by->irecv(in, kWords, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, &requests[0]);
    by->isend(out, kWords, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, &requests[1]);
    by->waitall(2, requests, MPI_STATUSES_IGNORE);
    by->allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    by->allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  return MPI_Wtime() - start;
}

int main(int count, char** words) {
  static double times[kMostTurns][2];
  const double seconds = count > 1 ? atof(words[1]) : 1;
  int turns = 0;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  calibrate();
  block(&seen), block(&unseen);
  const double end = MPI_Wtime() + seconds;
  for (int goes_on = 1; goes_on && turns < kMostTurns; turns++) {
    /* The one that was second is first in the next turn. */
    for (int i = 0; i < 2; i++) {
      const int kind = (turns + i) % 2;
      times[turns][kind] = block(kind == 0 ? &seen : &unseen);
    }
    goes_on = turns < 3 || MPI_Wtime() < end;
    PMPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  if (rank == 0) {
    printf("%d\n", kSteps * kCallsOfStep);
    for (int turn = 0; turn < turns; turn++) printf("%.9f %.9f\n", times[turn][0], times[turn][1]);
  }
  MPI_Finalize();
  return 0;
}
