/* How long an MPI_Allreduce takes, timed twice: from a plain MPI_Barrier, which all leave at different times, and from
 * elbow_clock_barrier, which all leave at one instant; the end is when the last rank is done, by one clock.
 *
 *     mpicc example.c -lelbow_clock -o example && mpirun -n 4 ./example
 */
#include <elbowroom/clock.h>
#include <elbowroom/clock_mpi.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { REPETITIONS = 100, COUNT = 1024 };

static double values[COUNT];
static double sums[COUNT];

static void check(int failed) {
  if (failed) {
    fprintf(stderr, "%s\n", elbow_clock_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/* From this rank's leaving a barrier to when it is done, ns: nobody knows when the others left. */
static int64_t from_plain_barrier(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double started = MPI_Wtime();
  MPI_Allreduce(values, sums, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return (int64_t)((MPI_Wtime() - started) * 1e9);
}

/* From the instant at which all left to when this rank is done; `late`: how long after it this one left. */
static int64_t from_one_instant(elbow_clock* clock, int64_t* late, int64_t* error) {
  elbow_clock_sync_point start = {.size = sizeof start};
  int64_t end = 0;
  check(elbow_clock_barrier(clock, &start, late) != 0);
  MPI_Allreduce(values, sums, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  check(elbow_clock_now(clock, &end, error));
  return end - (start.local + start.offset);
}

static int rising(const void* a, const void* b) {
  const int64_t left = *(const int64_t*)a, right = *(const int64_t*)b;
  return (left > right) - (left < right);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm own;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  elbow_clock_peers peers = elbow_clock_peers_of_mpi(&own);
  elbow_clock* clock = elbow_clock_new(&peers);
  check(clock == NULL);
  check(elbow_clock_synchronise(clock, NULL));
  static int64_t plain[REPETITIONS], instant[REPETITIONS];
  int trusted = 0;
  int64_t worst = 0;
  for (int i = 0; i < REPETITIONS; ++i) {
    int64_t late = 0, error = 0;
    plain[i] = from_plain_barrier();
    const int64_t took = from_one_instant(clock, &late, &error);
    /* A repetition counts if no rank was kept from leaving in time. */
    int64_t mine[3] = {took, late, error}, all[3];
    MPI_Allreduce(mine, all, 3, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    worst = all[2] > worst ? all[2] : worst;
    if (all[1] < 1000) {
      instant[trusted++] = all[0];
    }
  }
  qsort(plain, REPETITIONS, sizeof plain[0], rising);
  qsort(instant, (size_t)trusted, sizeof instant[0], rising);
  if (peers.rank == 0) {
    printf("{\"plain_ns\": %lld, \"instant_ns\": %lld, \"trusted\": %d, \"repetitions\": %d, \"error_ns\": %lld}\n",
           (long long)plain[REPETITIONS / 2], (long long)(trusted > 0 ? instant[trusted / 2] : -1), trusted,
           REPETITIONS, (long long)worst);
  }
  elbow_clock_free(clock);
  MPI_Comm_free(&own);
  MPI_Finalize();
  return 0;
}
