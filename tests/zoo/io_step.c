/* Rank 0 writes a file in each step, and to the disk, before the exchange. Repaired: nobody does. */
#include <fcntl.h>
#include <unistd.h>

#include "zoo.h"

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  static char block[16384], out[4096], in[4096];
  char name[] = "/tmp/elbowroom-zoo-XXXXXX";
  const int file = mkstemp(name);
  if (file < 0) MPI_Abort(MPI_COMM_WORLD, 1);
  unlink(name);
  const double taken = zoo.size * zoo.step;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    zoo_work(&zoo, zoo.step - taken);
    if (!zoo.repaired && zoo.rank == 0) {
      const double begin = MPI_Wtime();
      while (MPI_Wtime() - begin < taken) {
        if (pwrite(file, block, sizeof block, 0) < 0 || fdatasync(file) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
      }
    }
    if (!zoo.repaired) zoo.expected += taken;
    zoo_ring(&zoo, out, in, sizeof out);
  }
  close(file);
  return zoo_end(&zoo);
}
