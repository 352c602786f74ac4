/* Four ranks: each kind of tree, small and large, from two roots. Tags tell the broadcasts apart. */
#include <elbowroom/broadcast_mpi.h>
#include <stdio.h>

enum { LARGE = 200000 };
static char data[LARGE];

static void check(int failed) {
  if (failed) {
    fprintf(stderr, "%s\n", elbow_broadcast_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

static void broadcast_from(elbow_broadcast* broadcast, int rank, int root, int tag, size_t size, const char* tree) {
  elbow_broadcast_operation operation;
  if (rank == root) {
    elbow_broadcast_recipient others[3];
    size_t count = 0;
    for (int other = 0; other < 4; ++other) {
      if (other != root) others[count++] = (elbow_broadcast_recipient){other, 0};
    }
    const elbow_broadcast_way way = {sizeof way, tree, 65536};
    check(elbow_broadcast_send(broadcast, 0, tag, data, size, others, count, &way, &operation));
  } else {
    check(elbow_broadcast_receive(broadcast, 0, root, tag, data, size, &operation));
  }
  check(elbow_broadcast_wait(broadcast, operation, ELBOW_BROADCAST_RELEASED));
}

int main(int argc, char** argv) {
  static const char* const trees[] = {"flat", "chain", "binary", "binomial", "two"};
  MPI_Init(&argc, &argv);
  MPI_Comm own;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  elbow_broadcast_transport transport = elbow_broadcast_transport_of_mpi(own);
  elbow_broadcast* broadcast = elbow_broadcast_new(&transport, NULL);
  check(broadcast == NULL);
  int tag = 0;
  for (int root = 0; root < 4; root += 2) {
    for (int tree = 0; tree < 5; ++tree) {
      broadcast_from(broadcast, transport.rank, root, tag++, 1000, trees[tree]);
      broadcast_from(broadcast, transport.rank, root, tag++, LARGE, trees[tree]);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  elbow_broadcast_free(broadcast);
  MPI_Comm_free(&own);
  MPI_Finalize();
  return 0;
}
