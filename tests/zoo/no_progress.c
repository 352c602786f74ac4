/* Large messages are posted before a computation and completed after it; the library moves nothing meanwhile.
 * Repaired: the computation calls MPI_Testall now and then. */
#include "zoo.h"

enum { kSlices = 40 };
static char *out, *in;

static void exchange(const struct Zoo* zoo, double bytes) { zoo_ring(zoo, out, in, bytes); }

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  const double probe = 4e6, most = 64e6, taken = zoo.size * zoo.step;
  out = zoo_memory(most);
  in = zoo_memory(most);
  double bytes = probe * zoo_repetitions_of_pair(&zoo, exchange, probe, taken);
  bytes *= zoo_repetitions_of_pair(&zoo, exchange, bytes < most ? bytes : most, taken);
  if (bytes > most) bytes = most;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int done = 0;
    MPI_Irecv(in, (int)bytes, MPI_BYTE, zoo.left, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, (int)bytes, MPI_BYTE, zoo.right, 0, MPI_COMM_WORLD, &requests[1]);
    for (int slice = 0; slice < kSlices; ++slice) {
      zoo_work(&zoo, (zoo.step - taken) / kSlices);
      if (zoo.repaired && !done) MPI_Testall(2, requests, &done, statuses);
    }
    if (!done) MPI_Waitall(2, requests, statuses);
    if (!zoo.repaired) zoo.expected += taken;
  }
  free(out);
  free(in);
  return zoo_end(&zoo);
}
