// Programs that are difficult to run again: difficult STEPS MODE
// Modes, also several in one word: plain; input (reads a number from standard input); file (adds a line to steps.txt); strict (exit code 9 where a
// rank may use one core only).
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OWN_TOOL  // a PMPI tool that is linked into the program
static long exchanges;
int MPI_Sendrecv(const void* out, int count, MPI_Datatype type, int to, int tag, void* in, int in_count,
                 MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status* status) {
  ++exchanges;
  return PMPI_Sendrecv(out, count, type, to, tag, in, in_count, in_type, from, in_tag, comm, status);
}

int MPI_Finalize(void) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("tool: %ld exchanges\n", exchanges);
  return PMPI_Finalize();
}
#endif

static void compute(double seconds) {
  const double begin = MPI_Wtime();
  volatile double x = 1;
  while (MPI_Wtime() - begin < seconds) {
    for (int i = 0; i < 1000; ++i) x = x * 0.999 + 0.001;
  }
}

int main(int argc, char** argv) {
  int rank, ranks, number = 0;
  static char out[1000], in[1000];
  cpu_set_t cores;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int steps = atoi(argv[1]);
  const char* mode = argv[2];
  sched_getaffinity(0, sizeof cores, &cores);
  if (strstr(mode, "strict") != NULL && CPU_COUNT(&cores) == 1) {
    MPI_Finalize();
    return 9;
  }
  if (strstr(mode, "input") != NULL) {
    if (rank == 0 && scanf("%d", &number) != 1) MPI_Abort(MPI_COMM_WORLD, 8);
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  for (int step = 0; step < steps; ++step) {
    compute(0.004);
    MPI_Sendrecv(out, sizeof out, MPI_BYTE, (rank + 1) % ranks, 0, in, sizeof in, MPI_BYTE, (rank + ranks - 1) % ranks,
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (strstr(mode, "file") != NULL && rank == 0) {
    FILE* file = fopen("steps.txt", "a");
    if (file == NULL || fprintf(file, "%d steps\n", steps) < 0 || fclose(file) != 0) MPI_Abort(MPI_COMM_WORLD, 7);
  }
  if (rank == 0) printf("%d steps, read %d\n", steps, number);
  MPI_Finalize();
  return 0;
}
