// Steps of two ranks with one planted wait each, measured by the program itself: waits STEPS MODE
// late: rank 0 sends 5 ms late; hidden: 4 MiB each way, posted before 20 ms of computation;
// uneven: rank 1 is 5 ms late at a reduction. Prints the mean wait of a step and rank, s; of hidden the median wait of a step.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kBytes = 4 << 20 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void compute(double seconds) {
  const double end = now() + seconds;
  volatile double x = 1;
  while (now() < end) {
    for (int i = 0; i < 1000; ++i) x = x * 0.999 + 0.001;
  }
}

static double positive(double seconds) { return seconds > 0 ? seconds : 0; }

static double late(int rank) {
  double sent = 0;
  compute(rank == 0 ? 0.010 : 0.005);
  const double begin = now();
  if (rank == 0) {
    sent = begin;
    MPI_Send(&sent, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
  } else {
    MPI_Recv(&sent, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return positive(sent - begin);
}

static double uneven(int rank) {
  double last = 0;
  compute(rank == 1 ? 0.010 : 0.005);
  const double begin = now();
  MPI_Allreduce(&begin, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return positive(last - begin);
}

static double hidden(int rank, char* out, char* in) {
  MPI_Request requests[2];
  MPI_Irecv(in, kBytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, kBytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
  compute(0.020);
  const double begin = now();
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  return now() - begin;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double mean(const double* waits, int steps) {
  double sum = 0;
  for (int step = 0; step < steps; ++step) sum += waits[step];
  return sum / steps;
}

// What a transfer usually takes: where the machine is busy, some take much longer.
static double transfer(double* waits, int steps) {
  qsort(waits, steps, sizeof *waits, compare);
  return waits[steps / 2];
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int steps = atoi(argv[1]);
  const char* mode = argv[2];
  char* out = calloc(kBytes, 1);
  char* in = calloc(kBytes, 1);
  double* waits = calloc(steps, sizeof *waits);
  for (int step = 0; step < steps; ++step) {
    waits[step] = strcmp(mode, "late") == 0     ? late(rank)
                  : strcmp(mode, "uneven") == 0 ? uneven(rank)
                                                : hidden(rank, out, in);
  }
  // The first step is not in the account.
  double own = strcmp(mode, "hidden") == 0 ? transfer(waits + 1, steps - 1) : mean(waits + 1, steps - 1), sum = 0;
  MPI_Reduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%.9f\n", sum / 2);
  MPI_Finalize();
  return 0;
}
