/* An allreduce after a computation that takes longer, the higher the rank. Repaired: all compute the same. */
#include "zoo.h"

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  double values[64] = {0}, sums[64];
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    const double less = zoo.step * zoo.size * (zoo.ranks - 1 - zoo.rank) / (zoo.ranks - 1);
    zoo_work(&zoo, zoo.step - (zoo.repaired ? zoo.step * zoo.size / 2 : less));
    if (!zoo.repaired) zoo.expected += less;
    MPI_Allreduce(values, sums, 64, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  return zoo_end(&zoo);
}
