/* A stencil over two grids, by MPI and OpenMP, whose best number of threads differs by phase: a sweep of the fine grid gains
 * by every core, the many short loops over the coarse grid lose by the barriers of more than one thread.
 *     guard_stencil STEPS [ROWS] [LOOPS] [marks|best]
 * prints seconds of a step and a checksum; `marks`: it marks its steps; `best`: the coarse loops have one thread. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kColumns = 512, kCoarse = 64 };

static void sweep(const double* restrict old, double* restrict new, int rows) {
#pragma omp parallel for schedule(static)
  for (int row = 1; row < rows - 1; ++row) {
    for (int column = 1; column < kColumns - 1; ++column) {
      const double* at = old + (size_t)row * kColumns + column;
      new[(size_t)row * kColumns + column] = 0.2 * (at[0] + at[-1] + at[1] + at[-kColumns] + at[kColumns]);
    }
  }
}

static void relax(double* restrict grid, double* restrict other, int loops, int alone) {
  for (int loop = 0; loop < loops; ++loop) {
#pragma omp parallel for schedule(static) if (!alone)
    for (int i = 1; i < kCoarse - 1; ++i) other[i] = 0.25 * (grid[i - 1] + 2 * grid[i] + grid[i + 1]);
    double* const swapped = grid;
    grid = other;
    other = swapped;
  }
}

static void exchange(double* grid, int rows, int rank, int ranks) {
  const int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
  MPI_Sendrecv(grid + kColumns, kColumns, MPI_DOUBLE, up, 0, grid + (size_t)(rows - 1) * kColumns, kColumns, MPI_DOUBLE,
               down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(grid + (size_t)(rows - 2) * kColumns, kColumns, MPI_DOUBLE, down, 1, grid, kColumns, MPI_DOUBLE, up, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int compare(const void* one, const void* other) {
  const double a = *(const double*)one, b = *(const double*)other;
  return (a > b) - (a < b);
}

int main(int count, char** words) {
  const int steps = count > 1 ? atoi(words[1]) : 200, rows = count > 2 ? atoi(words[2]) : 2048;
  const int loops = count > 3 ? atoi(words[3]) : 400, marks = count > 4 && strcmp(words[4], "marks") == 0;
  const int best = count > 4 && strcmp(words[4], "best") == 0;
  int rank = 0, ranks = 0, provided = 0;
  MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double* grid = calloc((size_t)rows * kColumns, sizeof *grid);
  double* other = calloc((size_t)rows * kColumns, sizeof *other);
  double coarse[2][kCoarse] = {{0}};
  double* seconds = malloc(steps * sizeof *seconds);
  for (size_t i = 0; i < (size_t)rows * kColumns; ++i) grid[i] = other[i] = 1 + (double)(i % 7);
  for (int i = 0; i < kCoarse; ++i) coarse[0][i] = coarse[1][i] = 1;
  for (int step = 0; step < steps; ++step) {
    const double begin = MPI_Wtime();
    if (marks) MPI_Pcontrol(1);
    exchange(grid, rows, rank, ranks);
    sweep(grid, other, rows);
    double own = other[kColumns + 2], sum = 0;
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    coarse[0][1] = sum;
    relax(coarse[0], coarse[1], loops, best);
    double* const swapped = grid;
    grid = other;
    other = swapped;
    seconds[step] = MPI_Wtime() - begin;
  }
  if (rank == 0) {
    const double sum = coarse[0][2] + grid[kColumns + 3];
    double total = 0;
    for (int step = steps / 2; step < steps; ++step) total += seconds[step];
    qsort(seconds, steps, sizeof *seconds, compare);
    printf("%.6f s a step, %.6f s in the second half, checksum %.12g\n", seconds[steps / 2],
           total / (steps - steps / 2), sum);
  }
  MPI_Finalize();
  return 0;
}
