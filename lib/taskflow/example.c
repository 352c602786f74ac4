/* A task graph over MPI: rank 0 makes a number, every rank adds its own to it, and rank 0 sums what came of that.
 *
 *     mpicc example.c $(pkg-config --cflags --libs elbow_taskflow) -o example && mpirun -n 4 ./example
 */
#include <elbowroom/broadcast_mpi.h>
#include <elbowroom/taskflow.h>
#include <stdio.h>

static void make(void* const* buffers, const void* argument) { *(int*)buffers[0] = *(const int*)argument; }

static void add(void* const* buffers, const void* argument) {
  *(int*)buffers[1] = *(const int*)buffers[0] + *(const int*)argument;
}

static void sum(void* const* buffers, const void* argument) {
  (void)argument;
  *(int*)buffers[1] += *(const int*)buffers[0];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm own;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  const elbow_broadcast_transport transport = elbow_broadcast_transport_of_mpi(own);
  elbow_broadcast* const broadcast = elbow_broadcast_new(&transport, NULL);
  elbow_taskflow* const flow = elbow_taskflow_new(broadcast, transport.rank, transport.ranks, NULL);
  int number = 0, mine = 0, total = 0;
  elbow_taskflow_data made, result;
  elbow_taskflow_register(flow, &number, sizeof number, 0, &made);
  elbow_taskflow_register(flow, &total, sizeof total, 0, &result);
  const int start = 100;
  const elbow_taskflow_use makes[] = {{made, ELBOW_TASKFLOW_WRITE}};
  elbow_taskflow_submit(flow, make, &start, sizeof start, makes, 1, 0, ELBOW_TASKFLOW_ANYWHERE);
  for (int rank = 0; rank < transport.ranks; ++rank) { /* the same tasks on every rank */
    elbow_taskflow_data own_data;
    elbow_taskflow_register(flow, &mine, sizeof mine, rank, &own_data);
    const elbow_taskflow_use adds[] = {{made, ELBOW_TASKFLOW_READ}, {own_data, ELBOW_TASKFLOW_WRITE}};
    elbow_taskflow_submit(flow, add, &rank, sizeof rank, adds, 2, 0, ELBOW_TASKFLOW_ANYWHERE);
    const elbow_taskflow_use sums[] = {{own_data, ELBOW_TASKFLOW_READ}, {result, ELBOW_TASKFLOW_READ_WRITE}};
    elbow_taskflow_submit(flow, sum, NULL, 0, sums, 2, 0, ELBOW_TASKFLOW_ANYWHERE);
  }
  if (elbow_taskflow_wait(flow) != 0) fprintf(stderr, "%s\n", elbow_taskflow_error());
  if (transport.rank == 0) printf("%d\n", total);
  elbow_taskflow_free(flow);
  elbow_broadcast_free(broadcast);
  MPI_Finalize();
  return 0;
}
