/* Each part of the account planted on purpose, alone or with others: a share of the step by the part's name, as in
 *
 *   PROGRAM late_ranks=0.2 io=0.2
 *
 * What really passes is measured by the program itself, with the clock that all ranks of a host share: how long a rank
 * waits is known from when the others come. The line that rank 0 prints has these shares, the mean of the ranks. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>

#include "zoo.h"

enum Part { kTransfer, kLateRanks, kNoProgress, kCollectiveWait, kLibrary, kScheduler, kIo, kParts };
static const char* const kNames[] = {"transfer", "late_ranks", "no_progress", "collective_wait",
                                     "library",  "scheduler",  "io"};
static double share[kParts], truth[kParts];
/* Of each step, s: when this rank came, and when it was through. */
static double *came_to_neighbours, *left_neighbours, *came_to_all, *left_all;
static char *out, *in;
static double bytes, behind_bytes, probes;
static double begin, begin_cpu; /* s: of the clock, and on a core */

/* Of a clock that all ranks of a host share; MPI_Wtime may begin anew in each rank. */
static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void start(void) {
  begin = now();
  begin_cpu = zoo_cpu_time();
}

/* Since `start`: on a core, for this part; else it waited for one (neither computation nor MPI sleeps). */
static void stop(enum Part part) {
  const double seconds = zoo_cpu_time() - begin_cpu;
  if (part != kParts) truth[part] += seconds;
  truth[kScheduler] += now() - begin - seconds;
}

static void work(const struct Zoo* zoo, double seconds) {
  start();
  zoo_work(zoo, seconds);
  stop(kParts);
}

/* Both neighbours, or all ranks, begin together; past a profiler. */
static void meet(void) { PMPI_Barrier(MPI_COMM_WORLD); }

static void exchange(const struct Zoo* zoo, double size) { zoo_ring(zoo, out, in, size); }

static void probe(const struct Zoo* zoo, double count) {
  int there;
  for (int i = 0; i < (int)count; ++i) ZOO_MPI(Iprobe)(zoo->left, 99, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
}

static double late(const struct Zoo* zoo, enum Part part) { return zoo->rank % 2 * 2 * share[part] * zoo->step; }

/* Some of the calls are measured past the profiler, whose own time counts as computation. */
static void plant_library(const struct Zoo* zoo) {
  const double part = 8;
  start();
  probe(zoo, probes);
  stop(kParts);
  zoo_measuring = 1;
  start();
  probe(zoo, probes / part);
  truth[kLibrary] += part * (zoo_cpu_time() - begin_cpu);
  stop(kParts);
  zoo_measuring = 0;
}

static void step_of(const struct Zoo* zoo, int step, double computes) {
  MPI_Request requests[2];
  MPI_Status statuses[2];
  if (share[kNoProgress] > 0) {
    MPI_Irecv(in, (int)behind_bytes, MPI_BYTE, zoo->left, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, (int)behind_bytes, MPI_BYTE, zoo->right, 2, MPI_COMM_WORLD, &requests[1]);
  }
  work(zoo, computes);
  if (share[kNoProgress] > 0) {
    start();
    MPI_Waitall(2, requests, statuses);
    stop(kNoProgress);
  }
  if (share[kIo] > 0) {
    const struct timespec time = {0, (long)(1e9 * share[kIo] * zoo->step)};
    start();
    nanosleep(&time, NULL);
    stop(kParts);
    truth[kIo] += share[kIo] * zoo->step;
    truth[kScheduler] -= share[kIo] * zoo->step;
  }
  if (share[kLibrary] > 0) plant_library(zoo);
  if (share[kTransfer] > 0) {
    meet();
    start();
    exchange(zoo, bytes);
    stop(kTransfer);
  }
  work(zoo, late(zoo, kLateRanks));
  came_to_neighbours[step] = now();
  exchange(zoo, 8);
  left_neighbours[step] = now();
  work(zoo, late(zoo, kCollectiveWait));
  came_to_all[step] = now();
  MPI_Barrier(MPI_COMM_WORLD);
  left_all[step] = now();
}

/* What this rank waited since it came until `others` came; whoever takes long from then on waits for a core. */
static void add_wait(const struct Zoo* zoo, enum Part part, const double* came, const double* others,
                     const double* left) {
  double usual = 1;
  for (int step = 0; step < zoo->steps; ++step) {
    const double took = left[step] - fmax(came[step], others[step]);
    if (took < usual) usual = took;
  }
  for (int step = 0; step < zoo->steps; ++step) {
    truth[part] += fmax(others[step] - came[step], 0);
    truth[kScheduler] += left[step] - fmax(came[step], others[step]) - usual;
  }
}

/* How long this rank waited for its left neighbour, and for all: from when each of them came. */
static void add_waits(const struct Zoo* zoo) {
  double* others = (double*)zoo_memory((double)zoo->steps * sizeof(double));
  PMPI_Sendrecv(came_to_neighbours, zoo->steps, MPI_DOUBLE, zoo->right, 3, others, zoo->steps, MPI_DOUBLE, zoo->left, 3,
                MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  add_wait(zoo, kLateRanks, came_to_neighbours, others, left_neighbours);
  PMPI_Allreduce(came_to_all, others, zoo->steps, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  add_wait(zoo, kCollectiveWait, came_to_all, others, left_all);
  free(others);
}

static atomic_int ended;

/* Takes turns with its rank, on the rank's core. */
static void* compute_beside(void* given) {
  const struct Zoo* zoo = given;
  const double period = 4e-3;
  while (!ended) {
    zoo_iterate(share[kScheduler] * period * zoo->rate);
    const struct timespec rest = {0, (long)(1e9 * (1 - share[kScheduler]) * period)};
    nanosleep(&rest, NULL);
  }
  return NULL;
}

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  double computes = zoo.step, seconds, all[kParts];
  const double large = 4e6;
  pthread_t beside;
  for (int part = 0; part < kParts; ++part) {
    share[part] = zoo_option(argc, argv, kNames[part], 0);
    if (part != kScheduler) computes -= share[part] * zoo.step;
  }
  zoo_bind_to_one_core(zoo.rank);
  out = zoo_memory(16 * large);
  in = zoo_memory(16 * large);
  bytes = large * zoo_repetitions(&zoo, exchange, large, share[kTransfer] * zoo.step);
  behind_bytes = large * zoo_repetitions(&zoo, exchange, large, share[kNoProgress] * zoo.step);
  probes = 1000 * zoo_repetitions(&zoo, probe, 1000, share[kLibrary] * zoo.step);
  double** times[] = {&came_to_neighbours, &left_neighbours, &came_to_all, &left_all};
  for (int i = 0; i < 4; ++i) *times[i] = (double*)zoo_memory((double)zoo.steps * sizeof(double));
  prctl(PR_SET_TIMERSLACK, 1ul); /* sleeps as long as it says */
  if (share[kScheduler] > 0) pthread_create(&beside, NULL, compute_beside, &zoo);
  zoo_first_step(&zoo);
  const double first = now();
  for (int step = 0; step < zoo.steps; ++step) step_of(&zoo, step, computes);
  seconds = now() - first;
  ended = 1;
  if (share[kScheduler] > 0) pthread_join(beside, NULL);
  add_waits(&zoo);
  PMPI_Reduce(truth, all, kParts, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (zoo.rank == 0) {
    printf("{\"steps\": %d, \"step_s\": %.6g, \"planted\": {", zoo.steps, seconds / zoo.steps);
    for (int part = 0; part < kParts; ++part) {
      printf("%s\"%s\": %.4g", part > 0 ? ", " : "", kNames[part], all[part] / zoo.ranks / seconds);
    }
    printf("}}\n");
  }
  MPI_Finalize();
  return 0;
}
