/* A program whose steps compute and call MPI_Allreduce: what `advise --verify` runs for
 * docs/guide/does-overlapping-pay.md.
 *
 *     mpicc -O2 benchmarks/allreduce_step.c -o allreduce_step
 *     mpirun -n 2 ./allreduce_step FORM PROGRESS BYTES PARTS
 *
 * FORM: none (no communication), blocking, nonblocking; PROGRESS: none, or test (MPI_Test between two parts of the
 * computation). A step computes PARTS times TRIAD over 8192 items of 24 bytes. Prints the median time of a step of the
 * slowest rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kItems = 1 << 21, kPart = 1 << 13, kSteps = 41, kWarmUp = 5 };

static double *a, *b, *c;

/* TRIAD over a part of the arrays. */
static void compute(long part) {
  const long first = part * kPart % kItems;
  for (long i = first; i < first + kPart; ++i) a[i] = b[i] + 0.5 * c[i];
}

static int ascending(const void* x, const void* y) {
  const double left = *(const double*)x, right = *(const double*)y;
  return (left > right) - (left < right);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int known = argc == 5 && (!strcmp(argv[1], "none") || !strcmp(argv[1], "blocking") ||
                                  !strcmp(argv[1], "nonblocking"));
  if (!known || (strcmp(argv[2], "none") && strcmp(argv[2], "test"))) {
    if (rank == 0) fprintf(stderr, "usage: allreduce_step none|blocking|nonblocking none|test BYTES PARTS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int blocking = !strcmp(argv[1], "blocking"), starting = !strcmp(argv[1], "nonblocking");
  const int testing = !strcmp(argv[2], "test");
  const long parts = atol(argv[4]);
  const int count = atoi(argv[3]) / (int)sizeof(float);
  float *in = calloc((size_t)count, sizeof *in), *out = calloc((size_t)count, sizeof *out);
  a = calloc(kItems, sizeof *a), b = calloc(kItems, sizeof *b), c = calloc(kItems, sizeof *c);
  for (long i = 0; i < kItems; ++i) b[i] = c[i] = 1.0;
  double times[kSteps];
  for (int step = -kWarmUp; step < kSteps; ++step) {
    MPI_Request request;
    int done = !starting;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (blocking) MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (starting) MPI_Iallreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
    for (long part = 0; part < parts; ++part) {
      compute(part);
      if (testing && !done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    if (!done) MPI_Wait(&request, MPI_STATUS_IGNORE);
    double seconds = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (step >= 0) times[step] = seconds;
  }
  qsort(times, kSteps, sizeof *times, ascending);
  if (rank == 0) printf("time per step: %.9f s\n", times[kSteps / 2]);
  MPI_Finalize();
  return 0;
}
