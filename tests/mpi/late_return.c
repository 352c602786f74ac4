/* Lies behind a tool: calls that complete requests return late, so that MPI gives their handles to other threads meanwhile. */
#include <mpi.h>
#include <time.h>

static void wait_a_little(void) {
  const struct timespec pause = {0, 300000};
  nanosleep(&pause, NULL);
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  const int result = PMPI_Wait(request, status);
  wait_a_little();
  return result;
}

int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  const int result = PMPI_Waitall(count, requests, statuses);
  wait_a_little();
  return result;
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  const int result = PMPI_Test(request, flag, status);
  if (*flag) wait_a_little();
  return result;
}
