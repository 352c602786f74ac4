// Two ranks, one message from 0 to 1 in each of ROUNDS rounds, caches of up to 4 MiB emptied before: what a call of MPI
// touches misses once, and valgrind counts it (benchmarks/footprint.py).
//   touched_lines BYTES BARRIER(0|1) ROUNDS
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace {

constexpr std::size_t kEmptied = std::size_t{4} << 20;
constexpr std::size_t kLine = 64;
constexpr useconds_t kUntilReceiverWaits = 20'000;
constexpr int kTag = 3;

}  // namespace

// Functions that valgrind is told about by their names.
extern "C" {
[[gnu::noinline]] void counted_send(char* buffer, int bytes) {
  MPI_Send(buffer, bytes, MPI_BYTE, 1, kTag, MPI_COMM_WORLD);
}
[[gnu::noinline]] void counted_receive(char* buffer, int bytes) {
  MPI_Recv(buffer, bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) {
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int bytes = std::atoi(argv[1]);
  const bool barrier = std::atoi(argv[2]) != 0;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<char> buffer(static_cast<std::size_t>(bytes));
  std::vector<char> other(kEmptied);
  for (int round = std::atoi(argv[3]); round > 0; --round) {
    MPI_Barrier(MPI_COMM_WORLD);
    for (std::size_t at = 0; at < kEmptied; at += kLine) {
      static_cast<volatile char&>(other[at]) = 1;
    }
    if (barrier) {
      MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) {
      usleep(kUntilReceiverWaits);
      counted_send(buffer.data(), bytes);
    } else {
      counted_receive(buffer.data(), bytes);
    }
  }
  MPI_Finalize();
  return 0;
}
