/* A large nonblocking allreduce beside a computation; the library moves nothing meanwhile. Repaired: the computation
 * calls MPI_Test now and then. */
#include "zoo.h"

enum { kSlices = 40 };
static double *out, *in;

static void reduce(const struct Zoo* zoo, double count) {
  MPI_Request request;
  (void)zoo;
  PMPI_Iallreduce(out, in, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  const double probe = 5e5, most = 4e6, taken = zoo.size * zoo.step;
  out = (double*)zoo_memory(most * sizeof(double));
  in = (double*)zoo_memory(most * sizeof(double));
  double count = probe * zoo_repetitions(&zoo, reduce, probe, taken);
  count *= zoo_repetitions(&zoo, reduce, count < most ? count : most, taken);
  if (count > most) count = most;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    MPI_Request request;
    int done = 0;
    MPI_Iallreduce(out, in, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    for (int slice = 0; slice < kSlices; ++slice) {
      zoo_work(&zoo, (zoo.step - taken) / kSlices);
      if (zoo.repaired && !done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    if (!done) MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (!zoo.repaired) zoo.expected += taken;
  }
  free(out);
  free(in);
  return zoo_end(&zoo);
}
