/* Like miniMD: forces of atoms in a box from lists of neighbours, positions exchanged in three directions, one after the
 * other; every tenth step atoms move between ranks, in messages of varying size, and the lists are made again. */
#include "zoo.h"

enum { kNear = 20 };

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  const int atoms = zoo.bytes > 0 ? (int)zoo.bytes : 40000, halo = atoms / 8;
  double *x = (double*)zoo_memory(3.0 * atoms * sizeof(double)), *f = (double*)zoo_memory(3.0 * atoms * sizeof(double));
  double* in = (double*)zoo_memory(3.0 * halo * sizeof(double));
  int* near = (int*)zoo_memory((double)atoms * kNear * sizeof(int));
  for (int i = 0; i < 3 * atoms; ++i) x[i] = zoo_draw(&zoo, 1000) * 0.1;
  zoo.expected = -1;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    if (step % 10 == 0) {
      const int moving = 100 + 3 * zoo_draw(&zoo, 200);
      for (int direction = 0; direction < 3; ++direction) {
        MPI_Sendrecv(x, moving, MPI_DOUBLE, zoo.right, 9, in, 3 * halo, MPI_DOUBLE, zoo.left, 9, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
      }
      for (int i = 0; i < atoms * kNear; ++i) near[i] = (i / kNear + 7 * (i % kNear) + step) % atoms;
    }
    for (int direction = 0; direction < 3; ++direction) {
      MPI_Sendrecv(x, 3 * halo, MPI_DOUBLE, direction == 1 ? zoo.left : zoo.right, direction, in, 3 * halo, MPI_DOUBLE,
                   direction == 1 ? zoo.right : zoo.left, direction, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < atoms; ++i) {
      double sum = 0;
      for (int j = 0; j < kNear; ++j) {
        const double d = x[3 * i] - x[3 * near[i * kNear + j]], r = 1 / (d * d + 1);
        sum += r * r * r * (r - 0.5) * d;
      }
      f[3 * i] = sum;
    }
    for (int i = 0; i < 3 * atoms; ++i) x[i] += 1e-9 * f[i];
    if (step % 10 == 9) {
      double energy = x[0], all;
      MPI_Allreduce(&energy, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
  }
  free(x), free(f), free(in), free(near);
  return zoo_end(&zoo);
}
