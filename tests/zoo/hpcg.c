/* Like HPCG: a multigrid-preconditioned conjugate gradient step on a box: symmetric Gauss-Seidel sweeps on four levels,
 * each with halos of its size, the product with the matrix, and three dot products. */
#include "zoo.h"

enum { kLevels = 4 };

static void sweep(double* x, int n) {
  for (int i = n + 1; i < n * n * n - n - 1; ++i) x[i] = 0.2 * (x[i - 1] + x[i + 1] + x[i - n] + x[i + n]) + 1e-9;
}

static void halo(const struct Zoo* zoo, double* x, int n) {
  MPI_Request requests[4];
  MPI_Status statuses[4];
  double *low = x, *high = x + (long)n * n * (n - 1);
  MPI_Irecv(low, n * n, MPI_DOUBLE, zoo->left, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(high, n * n, MPI_DOUBLE, zoo->right, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(high - n * n, n * n, MPI_DOUBLE, zoo->right, 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(low + n * n, n * n, MPI_DOUBLE, zoo->left, 2, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, statuses);
}

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  const int edge = zoo.bytes > 0 ? (int)zoo.bytes : 80;
  double* levels[kLevels];
  for (int level = 0; level < kLevels; ++level) {
    const double n = edge >> level;
    levels[level] = (double*)zoo_memory(n * n * n * sizeof(double));
  }
  zoo.expected = -1;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    for (int at = 0; at < 2 * kLevels - 1; ++at) {
      const int level = at < kLevels ? at : 2 * kLevels - 2 - at, n = edge >> level;
      halo(&zoo, levels[level], n);
      sweep(levels[level], n);
    }
    halo(&zoo, levels[0], edge);
    sweep(levels[0], edge);
    for (int i = 0; i < 3; ++i) {
      double sum = levels[0][17], all;
      for (int j = 0; j < edge * edge * edge; ++j) sum += levels[0][j] * levels[0][j];
      MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      zoo_sink += all;
    }
  }
  for (int level = 0; level < kLevels; ++level) free(levels[level]);
  return zoo_end(&zoo);
}
