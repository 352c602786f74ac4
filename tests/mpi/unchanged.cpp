// Programs that a tool must not change: `unchanged MODE`, two ranks. Each rank prints what it called, in lines
// `RANK CALLS FUNCTION`.
#include <mpi.h>
#include <setjmp.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

int rank, other;
std::map<std::string, int> called;
jmp_buf place;

#define CALL(name, ...) (++called["MPI_" #name], MPI_##name(__VA_ARGS__))

void throwing(MPI_Comm*, int*, ...) { throw std::runtime_error("an error of MPI"); }
void jumping(MPI_Comm*, int*, ...) { longjmp(place, 1); }

void handle_errors_by(void (*function)(MPI_Comm*, int*, ...)) {
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(function, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Errhandler_free(&handler);
}

// Messages in both directions, and their values.
void exchange(int count) {
  for (int i = 0; i < count; ++i) {
    int out = 100 * rank + i;
    int in = -1;
    MPI_Request requests[2];
    CALL(Irecv, &in, 1, MPI_INT, other, 7, MPI_COMM_WORLD, &requests[0]);
    CALL(Isend, &out, 1, MPI_INT, other, 7, MPI_COMM_WORLD, &requests[1]);
    CALL(Waitall, 2, requests, MPI_STATUSES_IGNORE);
    if (in != 100 * other + i) {
      std::abort();
    }
  }
}

[[gnu::noinline]] void exchange_deeper(int count) {
  volatile char room[20000];
  room[0] = room[sizeof room - 1] = 1;
  exchange(count);
}

void fail_by_exception() {
  handle_errors_by(throwing);
  int x = 0;
  for (int i = 0; i < 3; ++i) {
    try {
      CALL(Send, &x, 1, MPI_INT, 99, 7, MPI_COMM_WORLD);
      std::abort();
    } catch (const std::runtime_error&) {
    }
    try {
      CALL(Recv, &x, 1, MPI_INT, 99, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      std::abort();
    } catch (const std::runtime_error&) {
    }
    exchange(5);
  }
}

void fail_by_jump() {
  handle_errors_by(jumping);
  int x = 0;
  for (volatile int i = 0; i < 3; ++i) {
    if (setjmp(place) == 0) {
      CALL(Send, &x, 1, MPI_INT, 99, 7, MPI_COMM_WORLD);
      std::abort();
    }
    i == 1 ? exchange(5) : exchange_deeper(5);
  }
}

// A receive that is too short completes with an error; later ones are counted right.
void truncate() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int large[2] = {1, 2};
  int small[2] = {0, 0};
  for (int i = 0; i < 3; ++i) {
    MPI_Request requests[2];
    CALL(Irecv, &small[0], 1, MPI_INT, other, 8, MPI_COMM_WORLD, &requests[0]);
    CALL(Irecv, &small[1], 1, MPI_INT, other, 9, MPI_COMM_WORLD, &requests[1]);
    CALL(Barrier, MPI_COMM_WORLD);
    CALL(Send, large, 2, MPI_INT, other, 8, MPI_COMM_WORLD);
    CALL(Send, large, 1, MPI_INT, other, 9, MPI_COMM_WORLD);
    const bool fails = i == 0 ? CALL(Waitall, 2, requests, MPI_STATUSES_IGNORE) != MPI_SUCCESS
                              : CALL(Wait, &requests[0], MPI_STATUS_IGNORE) != MPI_SUCCESS;
    if (!fails) {
      std::abort();
    }
    if (requests[1] != MPI_REQUEST_NULL) {
      CALL(Wait, &requests[1], MPI_STATUS_IGNORE);
    }
    CALL(Barrier, MPI_COMM_WORLD);
    exchange(2);
  }
}

long resident_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) {
      return std::atol(line.c_str() + 6);
    }
  }
  return 0;
}

// A tag for each message, spread over many.
void use_many_tags(int count) {
  const long before = resident_kb();
  for (int i = 0; i < count; ++i) {
    int x = i;
    const int tag = static_cast<int>((i * 2654435761U) & 0x07FFFFFF);
    CALL(Sendrecv, &x, 1, MPI_INT, rank, tag, &x, 1, MPI_INT, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  std::printf("%d grown %ld\n", rank, resident_kb() - before);
}

// Every way to complete, over many pending requests.
void complete_in_all_ways() {
  constexpr int kRequests = 64;
  std::vector<MPI_Request> requests(kRequests);
  std::vector<int> in(kRequests), indices(kRequests);
  std::vector<MPI_Status> statuses(kRequests);
  for (int way = 0; way < 8; ++way) {
    for (int i = 0; i < kRequests; ++i) {
      CALL(Irecv, &in[i], 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : other, i, MPI_COMM_WORLD, &requests[i]);
    }
    CALL(Barrier, MPI_COMM_WORLD);
    for (int i = 0; i < kRequests; ++i) {
      CALL(Send, &i, 1, MPI_INT, other, i, MPI_COMM_WORLD);
    }
    int done = 0, flag = 0, index = 0, some = 0;
    while (done < kRequests) {
      switch (way) {
        case 0: CALL(Waitall, kRequests, requests.data(), MPI_STATUSES_IGNORE), done = kRequests; break;
        case 1: CALL(Testall, kRequests, requests.data(), &flag, statuses.data()), done = flag ? kRequests : 0; break;
        case 2: CALL(Waitany, kRequests, requests.data(), &index, MPI_STATUS_IGNORE), ++done; break;
        case 3: CALL(Testany, kRequests, requests.data(), &index, &flag, statuses.data()), done += flag; break;
        case 4: CALL(Waitsome, kRequests, requests.data(), &some, indices.data(), statuses.data()), done += some; break;
        case 5:
          CALL(Testsome, kRequests, requests.data(), &some, indices.data(), MPI_STATUSES_IGNORE), done += some;
          break;
        case 6: CALL(Wait, &requests[done], MPI_STATUS_IGNORE), ++done; break;
        default: CALL(Test, &requests[done], &flag, MPI_STATUS_IGNORE), done += flag; break;
      }
    }
    for (int i = 0; i < kRequests; ++i) {
      if (in[i] != i || requests[i] != MPI_REQUEST_NULL) {
        std::abort();
      }
    }
    CALL(Barrier, MPI_COMM_WORLD);
  }
}

// What a child loads: a shell and a tool without MPI.
void run_child() {
  exchange(3);
  FILE* const child = popen("grep -c libmpi /proc/self/maps", "r");
  int lines = -1;
  if (child == nullptr || std::fscanf(child, "%d", &lines) != 1) {
    std::abort();
  }
  pclose(child);
  std::printf("%d child %d\n", rank, lines);
  exchange(3);
}

}  // namespace

int main(int count, char** words) {
  const std::string mode = count > 1 ? words[1] : "";
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  if (mode == "throw") fail_by_exception();
  if (mode == "jump") fail_by_jump();
  if (mode == "truncate") truncate();
  if (mode == "tags") use_many_tags(std::atoi(words[2]));
  if (mode == "ways") complete_in_all_ways();
  if (mode == "child") run_child();
  if (mode == "exchange") exchange(10);
  for (const auto& [name, times] : called) {
    std::printf("%d %d %s\n", rank, times, name.c_str());
  }
  std::fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
