/* Many messages that nobody receives until the end come first; each receive of a step, from any source, is matched
 * against all of them. Repaired: they are received before the first step. */
#include "zoo.h"

enum { kInStep = 40, kTag = 10000 };

static void receive_waiting(const struct Zoo* zoo, int count) {
  char in[64];
  for (int i = 0; i < count; ++i) {
    PMPI_Recv(in, sizeof in, MPI_BYTE, zoo->left, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  char out[64] = {0}, in[64];
  /* About 5 ns for each message that is looked at. */
  const int waiting = (int)(zoo.size * zoo.step / kInStep / 5e-9);
  for (int i = 0; i < waiting; ++i) {
    MPI_Request request;
    PMPI_Isend(out, sizeof out, MPI_BYTE, zoo.right, kTag, MPI_COMM_WORLD, &request);
    PMPI_Request_free(&request);
  }
  if (zoo.repaired) receive_waiting(&zoo, waiting);
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    MPI_Request requests[kInStep];
    MPI_Status statuses[kInStep];
    for (int i = 0; i < kInStep; ++i) {
      MPI_Isend(out, sizeof out, MPI_BYTE, zoo.right, i, MPI_COMM_WORLD, &requests[i]);
    }
    zoo_work(&zoo, zoo.step * (1 - zoo.size));
    const double begin = zoo_cpu_time();
    for (int i = 0; i < kInStep; ++i) {
      MPI_Recv(in, sizeof in, MPI_BYTE, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (!zoo.repaired) zoo.expected += zoo_cpu_time() - begin;
    MPI_Waitall(kInStep, requests, statuses);
  }
  if (!zoo.repaired) receive_waiting(&zoo, waiting);
  return zoo_end(&zoo);
}
