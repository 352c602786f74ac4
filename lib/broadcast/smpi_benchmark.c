/* How long one MPI_Bcast takes on a simulated network, until the last rank has the data (benchmarks/broadcast.py). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int size = argc > 1 ? atoi(argv[1]) : 0;
  int rank = 0;
  char* data = SMPI_SHARED_MALLOC(size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  const double started = MPI_Wtime();
  MPI_Bcast(data, size, MPI_BYTE, 0, MPI_COMM_WORLD);
  double taken = MPI_Wtime() - started;
  double longest = 0;
  MPI_Reduce(&taken, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("time %.3f us\n", longest * 1e6);
  SMPI_SHARED_FREE(data);
  MPI_Finalize();
  return 0;
}
