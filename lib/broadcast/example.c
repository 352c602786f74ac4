/* Rank 0 sends a table to all ranks with an even number. Only rank 0 knows who gets it: each recipient posts a receive from
 * rank 0, and some of them forward.
 *
 *     mpicc example.c -lelbow_broadcast -o example && mpirun -n 8 ./example
 */
#include <elbowroom/broadcast_mpi.h>
#include <stdio.h>

enum { COUNT = 100000, TAG = 7 };

static double table[COUNT];

static void check(int failed) {
  if (failed) {
    fprintf(stderr, "%s\n", elbow_broadcast_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm own;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  elbow_broadcast_transport transport = elbow_broadcast_transport_of_mpi(own);
  elbow_broadcast* broadcast = elbow_broadcast_new(&transport, NULL);
  check(broadcast == NULL);
  elbow_broadcast_operation operation = 0;
  if (transport.rank == 0) {
    elbow_broadcast_recipient recipients[1024];
    size_t count = 0;
    for (int rank = 2; rank < transport.ranks && count < 1024; rank += 2)
      recipients[count++] = (elbow_broadcast_recipient){rank, 0};
    for (int i = 0; i < COUNT; ++i) table[i] = i;
    const elbow_broadcast_way way = {sizeof way, "binary", 65536};
    if (count > 0)
      check(elbow_broadcast_send(broadcast, 0, TAG, table, sizeof table, recipients, count, &way, &operation));
  } else if (transport.rank % 2 == 0) {
    check(elbow_broadcast_receive(broadcast, 0, 0, TAG, table, sizeof table, &operation));
    check(elbow_broadcast_wait(broadcast, operation, ELBOW_BROADCAST_RECEIVED));
    printf("rank %d: the last value is %.0f\n", transport.rank, table[COUNT - 1]);
  }
  if (operation != 0)
    check(elbow_broadcast_wait(broadcast, operation, ELBOW_BROADCAST_RELEASED)); /* the table may be written */
  MPI_Barrier(MPI_COMM_WORLD);
  elbow_broadcast_free(broadcast);
  MPI_Comm_free(&own);
  MPI_Finalize();
  return 0;
}
