/* A part of the computation goes from rank to rank, each waits for the one before (late senders in a chain); the last
 * one tells the first. Repaired: nobody waits before that part, and all exchange after it. */
#include "zoo.h"

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  double value = 1;
  const double chained = zoo.step * zoo.size / (zoo.ranks - 1);
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    zoo_work(&zoo, zoo.step - zoo.ranks * chained);
    if (zoo.repaired) zoo_work(&zoo, chained);
    if (zoo.rank > 0) MPI_Recv(&value, 1, MPI_DOUBLE, zoo.left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!zoo.repaired) {
      zoo_work(&zoo, chained);
      zoo.expected += zoo.step * zoo.size;
    }
    MPI_Send(&value, 1, MPI_DOUBLE, zoo.right, 0, MPI_COMM_WORLD);
    if (zoo.rank == 0) MPI_Recv(&value, 1, MPI_DOUBLE, zoo.left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return zoo_end(&zoo);
}
