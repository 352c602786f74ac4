/* What the programs of the zoo share: options NAME=VALUE, computation of a known time, and the line that rank 0 prints.
 *
 *   PROGRAM [steps=150] [step_ms=8] [size=0.3] [repaired=1] [bytes=N] [random=1] [seed=1]
 *
 * `size` is the planted share of a step. The line is JSON: the steps, the mean seconds of one, and `expected`, the
 * share of a step that a rank (mean of all) loses by what is planted, where the program knows it; else -1. */
#ifndef ELBOW_TESTS_ZOO_H
#define ELBOW_TESTS_ZOO_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct Zoo {
  int rank, ranks, left, right;
  int steps, repaired, random;
  double step;     /* s of a step, about */
  double size;     /* planted share of a step */
  double bytes;    /* 0: the program's own choice */
  double expected; /* s that this rank loses in all steps; < 0: not known */
  double begin;
  uint64_t seed;
  double rate; /* iterations per s */
};

static volatile double zoo_sink = 1;
static int zoo_measuring; /* calls of MPI while a program measures a size go past a profiler, which sees the steps */

/* ZOO_MPI(Sendrecv)(...) */
#define ZOO_MPI(name) (zoo_measuring ? PMPI_##name : MPI_##name)

static double zoo_cpu_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void zoo_iterate(double count) {
  double x = zoo_sink;
  for (long i = (long)count; i > 0; --i) x = x * 0.999999 + 1e-6;
  zoo_sink = x;
}

/* Computes for as long as a core that nobody else uses needs `seconds`: the same work on every rank. */
static inline void zoo_work(const struct Zoo* zoo, double seconds) {
  if (seconds > 0) zoo_iterate(seconds * zoo->rate);
}

/* The next pseudorandom number below `count`, the same on all ranks. */
static inline int zoo_draw(struct Zoo* zoo, int count) {
  zoo->seed = zoo->seed * 6364136223846793005u + 1442695040888963407u;
  return (int)((zoo->seed >> 33) % (uint64_t)count);
}

static double zoo_option(int argc, char** argv, const char* name, double value) {
  const size_t length = strlen(name);
  for (int i = 1; i < argc; ++i) {
    if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=') value = atof(argv[i] + length + 1);
  }
  return value;
}

static struct Zoo zoo_options(int argc, char** argv) {
  struct Zoo zoo;
  memset(&zoo, 0, sizeof zoo);
  MPI_Comm_rank(MPI_COMM_WORLD, &zoo.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &zoo.ranks);
  zoo.left = (zoo.rank + zoo.ranks - 1) % zoo.ranks;
  zoo.right = (zoo.rank + 1) % zoo.ranks;
  zoo.steps = (int)zoo_option(argc, argv, "steps", 150);
  zoo.step = 1e-3 * zoo_option(argc, argv, "step_ms", 8);
  zoo.size = zoo_option(argc, argv, "size", 0.3);
  zoo.repaired = zoo_option(argc, argv, "repaired", 0) > 0;
  zoo.random = zoo_option(argc, argv, "random", 0) > 0;
  zoo.bytes = zoo_option(argc, argv, "bytes", 0);
  zoo.seed = (uint64_t)zoo_option(argc, argv, "seed", 1);
  /* The fastest of some tries, by CPU time: other programs may have the core meanwhile. */
  const double count = 500000;
  for (int i = 0; i < 12; ++i) {
    const double begin = zoo_cpu_time();
    zoo_iterate(count);
    const double rate = count / (zoo_cpu_time() - begin);
    if (rate > zoo.rate) zoo.rate = rate;
  }
  MPI_Allreduce(MPI_IN_PLACE, &zoo.rate, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return zoo;
}

static inline struct Zoo zoo_begin(int* argc, char*** argv) {
  int level;
  MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
  return zoo_options(*argc, *argv);
}

/* Call it before the first step. */
static inline void zoo_first_step(struct Zoo* zoo) {
  MPI_Barrier(MPI_COMM_WORLD);
  zoo->begin = MPI_Wtime();
}

static inline int zoo_end(struct Zoo* zoo) {
  const double seconds = MPI_Wtime() - zoo->begin;
  double all = 0;
  MPI_Reduce(&zoo->expected, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (zoo->rank == 0) {
    const double share = all < 0 ? -1 : all / zoo->ranks / seconds;
    printf("{\"steps\": %d, \"step_s\": %.6g, \"expected\": %.4g}\n", zoo->steps, seconds / zoo->steps, share);
  }
  MPI_Finalize();
  return 0;
}

#ifdef CPU_SET /* _GNU_SOURCE came before the first header */
/* Binds this thread, and those that it starts, to one of its cores. */
static inline void zoo_bind_to_one_core(int number) {
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int wanted = number % CPU_COUNT(&allowed);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || wanted-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}
#endif

static inline char* zoo_memory(double bytes) {
  char* memory = malloc((size_t)bytes);
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  memset(memory, 1, (size_t)bytes);
  return memory;
}

/* Exchanges `bytes` with both neighbours of a ring: what is sent to the right comes from the left. */
static inline void zoo_ring(const struct Zoo* zoo, const char* out, char* in, double bytes) {
  ZOO_MPI(Sendrecv)
  (out, (int)bytes, MPI_BYTE, zoo->right, 1, in, (int)bytes, MPI_BYTE, zoo->left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The fastest of some calls of `once`, s, by ranks that meet before each. */
static inline double zoo_fastest(const struct Zoo* zoo, void (*once)(const struct Zoo*, double), double amount) {
  double best = 1e9;
  for (int i = 0; i < 8; ++i) {
    if (zoo->ranks == 2) {
      PMPI_Sendrecv(NULL, 0, MPI_BYTE, zoo->right, 0, NULL, 0, MPI_BYTE, zoo->left, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE);
    } else {
      PMPI_Barrier(MPI_COMM_WORLD);
    }
    const double begin = MPI_Wtime();
    once(zoo, amount);
    const double took = MPI_Wtime() - begin;
    if (i > 0 && took < best) best = took;
  }
  return best;
}

/* Waits for all ranks, asleep, so that other ranks may have the core. */
static inline void zoo_sleep_until_all(void) {
  MPI_Request request;
  int done = 0;
  PMPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (PMPI_Test(&request, &done, MPI_STATUS_IGNORE); !done; PMPI_Test(&request, &done, MPI_STATUS_IGNORE)) {
    const struct timespec pause = {0, 1000000};
    nanosleep(&pause, NULL);
  }
}

/* How many calls of `once` take `seconds`: measured, the same on all ranks. */
static inline double zoo_repetitions(const struct Zoo* zoo, void (*once)(const struct Zoo*, double), double amount,
                                     double seconds) {
  zoo_measuring = 1;
  double best = zoo_fastest(zoo, once, amount);
  PMPI_Allreduce(MPI_IN_PLACE, &best, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  zoo_measuring = 0;
  return seconds / best;
}

/* The same between ranks 0 and 1, while the others sleep: of large messages, ranks that share cores would measure how these
 * are shared. Of many small ones that is what they take. */
static inline double zoo_repetitions_of_pair(const struct Zoo* zoo, void (*once)(const struct Zoo*, double),
                                             double amount, double seconds) {
  struct Zoo pair = *zoo;
  double best = 0;
  pair.ranks = zoo->ranks < 2 ? 1 : 2;
  pair.left = pair.right = pair.ranks - 1 - zoo->rank;
  zoo_measuring = 1;
  if (zoo->rank < 2) best = zoo_fastest(&pair, once, amount);
  zoo_sleep_until_all();
  PMPI_Allreduce(MPI_IN_PLACE, &best, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  zoo_measuring = 0;
  return seconds / best;
}

/* How many seconds `once` takes: measured, the same on all ranks. */
static inline double zoo_duration(const struct Zoo* zoo, void (*once)(const struct Zoo*, double), double amount) {
  return 1 / zoo_repetitions(zoo, once, amount, 1);
}

#endif
