// What does not depend on what else is open: a further send, messages that are only waited for, and a message while another
// rank computes.
#include <chrono>
#include <cstdio>
#include <thread>

#include "bench.hpp"
#include "elbowroom/broadcast_mpi.h"

namespace elbowroom::broadcast::bench {
namespace {

constexpr std::size_t kLarge = 8192;         // more than travels with an announcement
constexpr std::size_t kComputing = 4 << 20;  // to the rank that computes
constexpr std::size_t kSegment = 64 << 10;
constexpr std::size_t kUnrelated = 256 << 10;
constexpr int kParts = 10;
constexpr std::int64_t kGo = 1 << 20;  // tags beyond those of the messages

class Library {
 public:
  Library() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &own_);
    const elbow_broadcast_transport transport = elbow_broadcast_transport_of_mpi(own_);
    broadcast_ = elbow_broadcast_new(&transport, nullptr);
    check(broadcast_ != nullptr);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    elbow_broadcast_free(broadcast_);
    MPI_Comm_free(&own_);
  }

  elbow_broadcast_operation send(int to, std::int64_t tag, const void* data, std::size_t size,
                                 std::size_t segment = 0) {
    const elbow_broadcast_recipient recipient = {to, 0};
    const elbow_broadcast_way way = {sizeof way, "flat", segment};
    elbow_broadcast_operation operation = 0;
    check(elbow_broadcast_send(broadcast_, 0, tag, data, size, &recipient, 1, &way, &operation) == 0);
    return operation;
  }
  elbow_broadcast_operation receive(int root, std::int64_t tag, void* data, std::size_t size) {
    elbow_broadcast_operation operation = 0;
    check(elbow_broadcast_receive(broadcast_, 0, root, tag, data, size, &operation) == 0);
    return operation;
  }
  void wait(elbow_broadcast_operation operation, int kind = ELBOW_BROADCAST_RELEASED) {
    check(elbow_broadcast_wait(broadcast_, operation, kind) == 0);
  }
  void progress() { check(elbow_broadcast_progress(broadcast_) == 0); }

  int rank = 0;
  int ranks = 0;

 private:
  MPI_Comm own_ = MPI_COMM_NULL;
  elbow_broadcast* broadcast_ = nullptr;
};

// MiB of this process.
double resident() {
  long pages = 0;
  long all = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  if (std::fscanf(file, "%ld %ld", &all, &pages) != 2) pages = 0;
  std::fclose(file);
  return static_cast<double>(pages) * 4096 / (1 << 20);
}

// s of a send, by tenths of so many that nobody receives yet.
std::vector<double> open_sends(Library& library, int count) {
  std::vector<char> data(kLarge);
  std::vector<elbow_broadcast_operation> operations;
  std::vector<double> times;
  if (library.rank == 0) {
    for (int part = 0; part < kParts; ++part) {
      const double begun = MPI_Wtime();
      for (int i = 0; i < count / kParts; ++i) {
        operations.push_back(library.send(1, part * (count / kParts) + i, data.data(), data.size()));
      }
      times.push_back((MPI_Wtime() - begun) / (count / kParts));
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (library.rank == 1) {  // the last one first
    for (int i = count / kParts * kParts - 1; i >= 0; --i)
      library.wait(library.receive(0, i, data.data(), data.size()));
  }
  for (const elbow_broadcast_operation operation : operations) library.wait(operation);
  MPI_Barrier(MPI_COMM_WORLD);
  return times;
}

// Of rank 1: s of a message that is only waited for until it is received, and MiB of the process, by tenths.
void waits(Library& library, int count, Open& open) {
  char byte = 0;
  for (int part = 0; part < kParts; ++part) {
    const double begun = MPI_Wtime();
    for (int i = 0; i < count / kParts; ++i) {
      const std::int64_t tag = part * (count / kParts) + i;
      if (library.rank == 0) library.wait(library.send(1, tag, &byte, 1));
      if (library.rank == 1) library.wait(library.receive(0, tag, &byte, 1), ELBOW_BROADCAST_RECEIVED);
    }
    double own[2] = {(MPI_Wtime() - begun) / (count / kParts), resident()};
    MPI_Bcast(own, 2, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    open.wait.push_back(own[0]);
    open.memory.push_back(own[1]);
  }
}

// s until rank 2 has a message and said so, while rank 1 computes in the middle of a large one, or not.
double unrelated(Library& library, bool computes, double seconds) {
  std::vector<char> large(kComputing);
  std::vector<char> data(kUnrelated);
  char answer = 0;
  double took = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (library.rank == 0) {
    const auto answered = library.receive(2, kGo, &answer, 1);
    const auto begun_to_compute = library.receive(1, kGo, &answer, 1);
    elbow_broadcast_operation slow = 0;
    if (computes) {
      slow = library.send(1, kGo + 1, large.data(), large.size(), kSegment);
      library.wait(begun_to_compute);
    } else {
      library.wait(begun_to_compute);
    }
    const double begun = MPI_Wtime();
    const auto sent = library.send(2, kGo + 2, data.data(), data.size(), kSegment);
    library.wait(answered);
    took = MPI_Wtime() - begun;
    library.wait(sent);
    if (computes) library.wait(slow);
  } else if (library.rank == 1) {
    elbow_broadcast_operation slow = 0;
    if (computes) {
      slow = library.receive(0, kGo + 1, large.data(), large.size());
      const double until = MPI_Wtime() + 1e-3;
      while (MPI_Wtime() < until) library.progress();
    }
    library.wait(library.send(0, kGo, &answer, 1));
    if (computes) {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
      library.wait(slow);
    }
  } else if (library.rank == 2) {
    library.wait(library.receive(0, kGo + 2, data.data(), data.size()));
    library.wait(library.send(0, kGo, &answer, 1));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return took;
}

}  // namespace

Open measure_open(int sends, int messages, int repeat, double computing) {
  Open open;
  Library library;
  if (sends > 0) open.send = open_sends(library, sends);
  if (messages > 0) waits(library, messages, open);
  for (int i = 0; i < repeat && library.ranks > 2; ++i) {
    open.alone.push_back(unrelated(library, false, computing));
    open.beside.push_back(unrelated(library, true, computing));
  }
  return open;
}

}  // namespace elbowroom::broadcast::bench
