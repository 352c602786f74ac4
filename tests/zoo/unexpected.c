/* Receives are posted after their messages came, in reverse order: the library stores each message and searches all
 * of them. Repaired: the receives are posted before the messages are sent. */
#include "zoo.h"

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  const int bytes = zoo.bytes > 0 ? (int)zoo.bytes : 256, count = (int)(zoo.size * 5000);
  char *out = zoo_memory((double)bytes * count), *in = zoo_memory((double)bytes * count);
  MPI_Request* requests = (MPI_Request*)zoo_memory(2.0 * count * sizeof(MPI_Request));
  MPI_Status* statuses = (MPI_Status*)zoo_memory(2.0 * count * sizeof(MPI_Status));
  zoo.expected = -1;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    for (int i = 0; zoo.repaired && i < count; ++i) {
      MPI_Irecv(in + i * bytes, bytes, MPI_BYTE, zoo.left, i, MPI_COMM_WORLD, &requests[count + i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) {
      MPI_Isend(out + i * bytes, bytes, MPI_BYTE, zoo.right, i, MPI_COMM_WORLD, &requests[i]);
    }
    zoo_work(&zoo, zoo.step * (1 - zoo.size));
    for (int i = count - 1; !zoo.repaired && i >= 0; --i) {
      MPI_Irecv(in + i * bytes, bytes, MPI_BYTE, zoo.left, i, MPI_COMM_WORLD, &requests[count + i]);
    }
    MPI_Waitall(2 * count, requests, statuses);
  }
  free(out);
  free(in);
  free(requests);
  free(statuses);
  return zoo_end(&zoo);
}
