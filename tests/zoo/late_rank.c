/* All pairs of ranks exchange after they computed; one rank computes longer: always rank 1, or (random=1) any.
 * Repaired: all compute the same. */
#include "zoo.h"

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  char out[1024] = {0}, in[1024];
  const double less = zoo.size * zoo.step;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    const int late = zoo.random ? zoo_draw(&zoo, zoo.ranks) : 1;
    if (zoo.repaired) {
      zoo_work(&zoo, zoo.step - less * (zoo.ranks - 1) / zoo.ranks);
    } else {
      zoo_work(&zoo, zoo.step - (zoo.rank == late ? 0 : less));
      if (zoo.rank != late) zoo.expected += less;
    }
    for (int away = 1; away < zoo.ranks; ++away) {
      MPI_Sendrecv(out, sizeof out, MPI_BYTE, (zoo.rank + away) % zoo.ranks, away, in, sizeof in, MPI_BYTE,
                   (zoo.rank + zoo.ranks - away) % zoo.ranks, away, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  return zoo_end(&zoo);
}
