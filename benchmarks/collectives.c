/* A loop of one blocking collective, as anybody would write it: benchmarks/collectives.py runs it in turns with the probe.
 *
 * collectives huge|small: buffers in huge pages, as the probe's are, or in small ones, which malloc gives.
 * Rank 0 reads lines "OPERATION BYTES ITERATIONS" and prints, for each, the mean over ranks and iterations of the time of
 * a call (osu_*), the largest mean of a rank (IMB's t_max) and the median of the slowest rank's, all in seconds.
 * Ranks that have nothing to do sleep. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int by_value(const void* a, const void* b) {
  return *(const double*)a < *(const double*)b ? -1 : *(const double*)a > *(const double*)b;
}

/* Each page is written once: pages that are only read are all the same page of zeros, which stays in the cache. */
static void* buffer(size_t bytes, int huge) {
  const size_t page = (size_t)2 << 20, rounded = (bytes + page - 1) / page * page;
  void* memory = aligned_alloc(page, rounded);
  madvise(memory, rounded, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return memset(memory, 1, rounded);
}

/* On the core that the probe uses for this rank: the launcher binds neither of them. */
static void bind(int rank) {
  cpu_set_t cores, own;
  CPU_ZERO(&own);
  sched_getaffinity(0, sizeof cores, &cores);
  int skipped = rank % CPU_COUNT(&cores), core = 0;
  while (!CPU_ISSET(core, &cores) || skipped-- > 0) core++;
  CPU_SET(core, &own);
  sched_setaffinity(0, sizeof own, &own);
}

static const char* const names[] = {"bcast", "reduce", "allreduce", "allgather", "alltoall"};

static int number_of(const char* name) {
  int number = 0;
  while (number < 4 && strcmp(name, names[number])) number++;
  return number;
}

static void call(int number, void* in, void* out, int bytes) {
  const MPI_Comm all = MPI_COMM_WORLD;
  switch (number) {
    case 0: MPI_Bcast(in, bytes, MPI_BYTE, 0, all); break;
    case 1: MPI_Reduce(in, out, bytes / 4, MPI_FLOAT, MPI_SUM, 0, all); break;
    case 2: MPI_Allreduce(in, out, bytes / 4, MPI_FLOAT, MPI_SUM, all); break;
    case 3: MPI_Allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, all); break;
    default: MPI_Alltoall(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, all);
  }
}

int main(int argc, char** argv) {
  const int huge = argc > 1 && !strcmp(argv[1], "huge");
  int rank, ranks, there, job[2];
  char name[32], line[128];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  bind(rank);
  for (;;) {
    if (rank == 0) {
      if (!fgets(line, sizeof line, stdin) || sscanf(line, "%31s %d %d", name, job, job + 1) != 3) job[1] = 0;
      for (int r = 1; r < ranks; r++) MPI_Send(name, sizeof name, MPI_BYTE, r, 0, MPI_COMM_WORLD);
    } else {
      for (there = 0; !there; there || usleep(2000)) MPI_Iprobe(0, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
      MPI_Recv(name, sizeof name, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Bcast(job, 2, MPI_INT, 0, MPI_COMM_WORLD);
    if (job[1] == 0) break;
    /* One behind the other: at the same place of two pages, each load would wait for the store 4 KiB before it. */
    const int number = number_of(name);
    const size_t bytes = (size_t)ranks * (size_t)job[0];
    char *in = buffer(2 * bytes, huge), *out = in + bytes;
    double* own = calloc((size_t)job[1], sizeof *own);
    double *worst = calloc((size_t)job[1], sizeof *worst), sum = 0, mean = 0, most = 0;
    for (int i = -6; i < job[1]; i++) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      call(number, in, out, job[0]);
      if (i >= 0) sum += own[i] = MPI_Wtime() - start;
    }
    sum /= job[1];
    MPI_Reduce(&sum, &mean, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&sum, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(own, worst, job[1], MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    qsort(worst, (size_t)job[1], sizeof *worst, by_value);
    if (rank == 0) printf("%.9g %.9g %.9g\n", mean / ranks, most, worst[job[1] / 2]), fflush(stdout);
    free(in), free(own), free(worst);
  }
  MPI_Finalize();
}
