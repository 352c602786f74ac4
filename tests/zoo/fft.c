/* Like a parallel 3D FFT: transforms along two directions inside each rank, a transpose by MPI_Alltoall, and transforms
 * along the third; forward and back in each step. */
#include "zoo.h"

/* A pass of butterflies over each line of n values, log2(n) times. */
static void transform(double* data, long lines, int n) {
  for (long line = 0; line < lines; ++line) {
    double* x = data + line * n;
    for (int span = n / 2; span > 0; span /= 2) {
      for (int i = 0; i < n - span; ++i) {
        const double sum = x[i] + x[i + span];
        x[i + span] = 0.5 * (x[i] - x[i + span]);
        x[i] = 0.5 * sum;
      }
    }
  }
}

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  const int n = 64;
  const long own = (long)n * n * n / zoo.ranks;
  double *data = (double*)zoo_memory((double)own * sizeof(double)),
         *other = (double*)zoo_memory((double)own * sizeof(double));
  zoo.expected = -1;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    for (int back = 0; back < 2; ++back) {
      transform(data, own / n, n);
      transform(data, own / n, n);
      const int part = (int)(own / zoo.ranks);
      MPI_Alltoall(data, part, MPI_DOUBLE, other, part, MPI_DOUBLE, MPI_COMM_WORLD);
      transform(other, own / n, n);
      double* swapped = data;
      data = other;
      other = swapped;
    }
  }
  zoo_sink += data[0];
  free(data), free(other);
  return zoo_end(&zoo);
}
