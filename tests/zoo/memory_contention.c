/* In each half of a step some ranks receive large messages while their partners, which sent them, compute on arrays
 * larger than the caches. Repaired: the computation needs no memory. Every second step has no messages, so the same
 * computation is also seen alone. */
#include "zoo.h"

static double *a, *b;
static const long kCount = 4000000;

static void stream(const struct Zoo* zoo, double count) {
  (void)zoo;
  for (long i = 0; i < (long)count; ++i) a[i] = 0.999 * b[i] + 1e-9 * a[i];
  zoo_sink += a[17];
}

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  const double bytes = zoo.bytes > 0 ? zoo.bytes : 16e6;
  char* data = zoo_memory(bytes);
  a = (double*)zoo_memory((double)kCount * sizeof(double));
  b = (double*)zoo_memory((double)kCount * sizeof(double));
  const double half = zoo.step / 2;
  double count = kCount * zoo_repetitions(&zoo, stream, (double)kCount, half);
  if (count > kCount) count = (double)kCount;
  const int partner = zoo.rank ^ 1;
  zoo.expected = -1;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    const int size = step % 2 == 0 ? (int)bytes : 8;
    for (int turn = 0; turn < 2; ++turn) {
      if (zoo.rank % 2 == turn) {
        MPI_Request request;
        MPI_Isend(data, size, MPI_BYTE, partner, turn, MPI_COMM_WORLD, &request);
        if (zoo.repaired) zoo_work(&zoo, half);
        if (!zoo.repaired) stream(&zoo, count);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      } else {
        MPI_Recv(data, size, MPI_BYTE, partner, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    }
  }
  free(data);
  free(a);
  free(b);
  return zoo_end(&zoo);
}
