/* elbow_clock_peers of an MPI communicator, for elbowroom/clock.h. A header only: it is compiled with the program's own MPI.
 *
 *     MPI_Comm own;
 *     MPI_Comm_dup(MPI_COMM_WORLD, &own);                 messages of the clock meet no others
 *     elbow_clock_peers peers = elbow_clock_peers_of_mpi(&own);
 *     elbow_clock* clock = elbow_clock_new(&peers);
 *
 * The communicator must outlive the clock.
 */
#ifndef ELBOWROOM_CLOCK_MPI_H
#define ELBOWROOM_CLOCK_MPI_H

#include <mpi.h>

#include "elbowroom/clock.h"

static int elbow_clock_peers_mpi_send(void* self, int to, const void* bytes, size_t count) {
  return MPI_Send(bytes, (int)count, MPI_BYTE, to, 0, *(MPI_Comm*)self) == MPI_SUCCESS ? 0 : -1;
}

static int elbow_clock_peers_mpi_receive(void* self, int from, void* bytes, size_t count) {
  return MPI_Recv(bytes, (int)count, MPI_BYTE, from, 0, *(MPI_Comm*)self, MPI_STATUS_IGNORE) == MPI_SUCCESS ? 0 : -1;
}

static inline elbow_clock_peers elbow_clock_peers_of_mpi(MPI_Comm* communicator) {
  elbow_clock_peers peers = {sizeof(elbow_clock_peers),    0, 1, communicator, elbow_clock_peers_mpi_send,
                             elbow_clock_peers_mpi_receive};
  MPI_Comm_rank(*communicator, &peers.rank);
  MPI_Comm_size(*communicator, &peers.ranks);
  return peers;
}

#endif
