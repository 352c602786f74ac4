// guarded: two processes communicate in all ways, and say after each what is in flight of them on the board. Rank 0 prints a
// line for each; the messages of 1 MiB are under way where it looks.
#include <mpi.h>

#include <cstdio>
#include <vector>

#include "elbowroom/guard.h"

namespace {

constexpr int kBytes = 1 << 20;
int rank = 0;
elbow_guard* guard = nullptr;

// While nobody begins or ends anything.
void say(const char* what) {
  PMPI_Barrier(MPI_COMM_WORLD);
  elbow_guard_traffic traffic{};
  traffic.size = sizeof traffic;
  elbow_guard_read(guard, &traffic);
  if (rank == 0) {
    std::printf("%s: %llu out, %llu in, %u ranks, %llu steps\n", what,
                static_cast<unsigned long long>(traffic.bytes[0]), static_cast<unsigned long long>(traffic.bytes[1]),
                traffic.ranks, static_cast<unsigned long long>(traffic.steps));
  }
  PMPI_Barrier(MPI_COMM_WORLD);
}

void nonblocking(char* out, char* in) {
  MPI_Request requests[2];
  MPI_Irecv(in, kBytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, kBytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
  say("posted");
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  say("complete");
}

void persistent(char* out, char* in) {
  MPI_Request requests[2];
  MPI_Recv_init(in, kBytes, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(out, kBytes, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, &requests[1]);
  say("made");
  for (int i = 0; i < 2; ++i) {
    MPI_Startall(2, requests);
    say("started");
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  say("persistent ones are free");
}

void blocking(char* out, char* in) {
  MPI_Sendrecv(out, kBytes, MPI_CHAR, 1 - rank, 2, in, kBytes, MPI_CHAR, 1 - rank, 2, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Bcast(out, kBytes, MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_Send(out, kBytes, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  say("blocking calls are over");
}

void odd_ends(char* out, char* in) {
  MPI_Request request;
  MPI_Irecv(in, kBytes, MPI_CHAR, 1 - rank, 3, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Irecv(in, kBytes, MPI_CHAR, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Isend(out, 8, MPI_CHAR, 1 - rank, 4, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  MPI_Recv(in, kBytes, MPI_CHAR, 1 - rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Ibcast(out, 8, MPI_CHAR, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  say("cancelled, freed and collective ones are over");
}

}  // namespace

int main(int count, char** words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Barrier(MPI_COMM_WORLD);
  guard = elbow_guard_open(nullptr);
  if (guard == nullptr) {
    std::fprintf(stderr, "guarded: %s\n", elbow_guard_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  std::vector<char> out(kBytes);
  std::vector<char> in(kBytes);
  say("begin");
  nonblocking(out.data(), in.data());
  persistent(out.data(), in.data());
  blocking(out.data(), in.data());
  odd_ends(out.data(), in.data());
  MPI_Pcontrol(1);
  say("a step");
  PMPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
