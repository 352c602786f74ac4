/* Like LULESH: three exchanges with up to 26 neighbours per step (faces, edges, corners of a cube of elements), the
 * computation between them, and an allreduce of the time step at the end. Neighbours wrap around. */
#include "zoo.h"

enum { kNeighbours = 26, kEdge = 30 };

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  int shape[3] = {0, 0, 0}, wraps[3] = {1, 1, 1}, place[3], peers[kNeighbours], sizes[kNeighbours], count = 0;
  MPI_Comm box;
  MPI_Dims_create(zoo.ranks, 3, shape);
  MPI_Cart_create(MPI_COMM_WORLD, 3, shape, wraps, 0, &box);
  MPI_Cart_coords(box, zoo.rank, 3, place);
  for (int code = 0; code < 27; ++code) {
    const int away[3] = {code % 3 - 1, code / 3 % 3 - 1, code / 9 - 1};
    const int order = abs(away[0]) + abs(away[1]) + abs(away[2]);
    if (order == 0) continue;
    const int other[3] = {place[0] + away[0], place[1] + away[1], place[2] + away[2]};
    MPI_Cart_rank(box, other, &peers[count]);
    sizes[count++] = order == 1 ? kEdge * kEdge : order == 2 ? kEdge : 1;
  }
  double* out = (double*)zoo_memory(3.0 * kNeighbours * kEdge * kEdge * sizeof(double));
  double* in = (double*)zoo_memory(3.0 * kNeighbours * kEdge * kEdge * sizeof(double));
  double dt = 1e-3, smallest;
  zoo.expected = -1;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    for (int phase = 0; phase < 3; ++phase) {
      const int fields = phase == 1 ? 3 : 1;
      MPI_Request requests[2 * kNeighbours];
      MPI_Status statuses[2 * kNeighbours];
      for (int i = 0; i < count; ++i) {
        const int first = 3 * i * kEdge * kEdge;
        MPI_Irecv(in + first, fields * sizes[i], MPI_DOUBLE, peers[i], count - 1 - i, box, &requests[i]);
      }
      zoo_work(&zoo, zoo.step * (phase == 0 ? 0.5 : 0.25));
      for (int i = 0; i < count; ++i) {
        const int first = 3 * i * kEdge * kEdge;
        MPI_Isend(out + first, fields * sizes[i], MPI_DOUBLE, peers[i], i, box, &requests[count + i]);
      }
      MPI_Waitall(2 * count, requests, statuses);
    }
    MPI_Allreduce(&dt, &smallest, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  }
  free(out), free(in);
  MPI_Comm_free(&box);
  return zoo_end(&zoo);
}
