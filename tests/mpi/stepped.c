// Steps that compute and exchange, and what they do counted by the program itself: stepped STEPS BYTES MODE
// Modes: plain, marks (MPI_Pcontrol), barriers (no messages),
// uneven (another size each time), fail (exit code 7), kill (no MPI_Finalize).
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double compute(double seconds) {
  const double begin = MPI_Wtime();
  volatile double x = 1;
  while (MPI_Wtime() - begin < seconds) {
    for (int i = 0; i < 1000; ++i) x = x * 0.999 + 0.001;
  }
  return MPI_Wtime() - begin;
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int steps = atoi(argv[1]), bytes = atoi(argv[2]);
  const char* mode = argv[3];
  char* out = calloc(bytes + steps, 1);
  char* in = calloc(bytes + steps, 1);
  double computed = 0, sent = 0;
  for (int step = 0; step < steps; ++step) {
    const int size = strcmp(mode, "uneven") == 0 ? bytes + step : bytes;
    if (strcmp(mode, "marks") == 0) MPI_Pcontrol(1);
    computed += compute(0.004);
    if (strcmp(mode, "barriers") == 0) {
      MPI_Barrier(MPI_COMM_WORLD);
      continue;
    }
    MPI_Sendrecv(out, size, MPI_BYTE, ranks - 1 - rank, 0, in, size, MPI_BYTE, ranks - 1 - rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    sent += size;
    if (strcmp(mode, "kill") == 0 && step == 15) raise(SIGKILL);
  }
  double all_sent = 0;
  MPI_Reduce(&sent, &all_sent, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("bytes %.0f computes %.6f\n", all_sent / steps, computed / steps);
  MPI_Finalize();
  return strcmp(mode, "fail") == 0 ? 7 : 0;
}
