/* k senders of a node: senders RANKS_PER_NODE K ROUNDS. Rank i of the first node sends to rank i of the second one, in rounds
 * of different messages that overlap, with pauses between. Who waits sleeps. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

enum { kMessages = 4, kLargest = 1 << 20 };
static const int kSizes[kMessages] = {16384, 262144, 4096, kLargest};

static void sleep_s(double seconds) {
  const struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int each = atoi(argv[1]), senders = atoi(argv[2]), rounds = argc > 3 ? atoi(argv[3]) : 1;
  const int place = rank % each;
  char* const data = calloc(kMessages, kLargest);
  for (int round = 0; round < rounds; round++) {
    MPI_Request requests[kMessages];
    MPI_Barrier(MPI_COMM_WORLD);
    sleep_s(0.05);
    if (place >= senders || rank >= 2 * each) continue;
    for (int i = 0; i < kMessages; i++) {
      char* const buffer = data + (size_t)i * kLargest;
      if (rank >= each) MPI_Irecv(buffer, kSizes[i], MPI_BYTE, place, i, MPI_COMM_WORLD, &requests[i]);
    }
    if (rank < each) sleep_s(0.003 * ((place + round) % 4));
    for (int i = 0; i < kMessages; i++) {
      char* const buffer = data + (size_t)i * kLargest;
      if (rank < each) MPI_Isend(buffer, kSizes[i], MPI_BYTE, each + place, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(kMessages, requests, MPI_STATUSES_IGNORE);
  }
  free(data);
  MPI_Finalize();
  return 0;
}
