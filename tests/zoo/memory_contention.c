/* In each half of a step every other rank copies its own large halo (a message to itself, as with periodic boundaries),
 * while the others compute on arrays larger than the caches; then they change places. Every second step has small halos,
 * so the same computation is also seen alone: what it then takes less is the contention. Repaired: the computation needs no memory. */
#include "zoo.h"

enum { kCount = 4000000 };
static double *a, *b;

static void stream(const struct Zoo* zoo, double count) {
  (void)zoo;
  for (long i = 0; i < (long)count; ++i) a[i] = 0.999 * b[i] + 1e-9 * a[i];
  zoo_sink += a[17];
}

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  const double bytes = 16e6, half = zoo.step / 2;
  char *out = zoo_memory(bytes), *in = zoo_memory(bytes);
  a = (double*)zoo_memory((double)kCount * sizeof(double));
  b = (double*)zoo_memory((double)kCount * sizeof(double));
  double count = kCount * zoo_repetitions(&zoo, stream, kCount, half);
  if (count > kCount) count = kCount;
  double took[2] = {0, 0}; /* s on a core: beside large halos, and alone */
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    const int size = step % 2 == 0 ? (int)bytes : 8;
    for (int turn = 0; turn < 2; ++turn) {
      if (zoo.rank % 2 == turn) {
        MPI_Sendrecv(out, size, MPI_BYTE, zoo.rank, 0, in, size, MPI_BYTE, zoo.rank, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
      } else if (zoo.repaired) {
        zoo_work(&zoo, half);
      } else {
        const double begin = zoo_cpu_time();
        stream(&zoo, count);
        took[step % 2] += zoo_cpu_time() - begin;
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (took[0] > took[1]) zoo.expected = took[0] - took[1];
  free(out);
  free(in);
  free(a);
  free(b);
  return zoo_end(&zoo);
}
