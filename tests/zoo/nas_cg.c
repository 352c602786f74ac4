/* Like NAS CG: conjugate gradients on a sparse random matrix, rows and columns over the ranks: sums of partial products
 * over all ranks, an exchange of the transposed vector, and two dot products per iteration. */
#include "zoo.h"

enum { kRow = 12 };

static double dot(const double* x, const double* y, int count) {
  double sum = 0, all;
  for (int i = 0; i < count; ++i) sum += x[i] * y[i];
  MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  const int own = zoo.bytes > 0 ? (int)zoo.bytes : 60000, all = own * zoo.ranks;
  double *p = (double*)zoo_memory(all * sizeof(double)), *q = (double*)zoo_memory(own * sizeof(double));
  double *r = (double*)zoo_memory(own * sizeof(double)), *x = (double*)zoo_memory(own * sizeof(double));
  int* column = (int*)zoo_memory((double)own * kRow * sizeof(int));
  for (int i = 0; i < own; ++i) {
    x[i] = 0;
    r[i] = p[zoo.rank * own + i] = 1.0 / (1 + i % 7);
    for (int j = 0; j < kRow; ++j) column[i * kRow + j] = zoo_draw(&zoo, all);
  }
  double rho = dot(r, r, own);
  zoo.expected = -1;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    double* mine = p + zoo.rank * own;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, p, own, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int i = 0; i < own; ++i) {
      double sum = 20 * mine[i];
      for (int j = 0; j < kRow; ++j) sum += 0.5 * p[column[i * kRow + j]];
      q[i] = sum;
    }
    const double alpha = rho / dot(mine, q, own);
    for (int i = 0; i < own; ++i) x[i] += alpha * mine[i];
    for (int i = 0; i < own; ++i) r[i] -= alpha * q[i];
    const double next = dot(r, r, own) + 1e-30;
    for (int i = 0; i < own; ++i) mine[i] = r[i] + next / rho * mine[i];
    rho = next;
  }
  zoo_sink += x[0];
  free(p), free(q), free(r), free(x), free(column);
  return zoo_end(&zoo);
}
