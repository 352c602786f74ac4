/* Even ranks send large messages to odd ones, which compute longer before they receive: the send waits for the
 * receive. Repaired: both compute the same. */
#include "zoo.h"

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  const double bytes = zoo.bytes > 0 ? zoo.bytes : 500000, less = zoo.size * zoo.step;
  char* data = zoo_memory(bytes);
  const int sends = zoo.rank % 2 == 0, partner = sends ? zoo.rank + 1 : zoo.rank - 1;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    zoo_work(&zoo, zoo.step - (zoo.repaired ? less / 2 : sends ? less : 0));
    if (sends && !zoo.repaired) zoo.expected += less;
    if (sends) MPI_Send(data, (int)bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD);
    if (!sends) MPI_Recv(data, (int)bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  free(data);
  return zoo_end(&zoo);
}
