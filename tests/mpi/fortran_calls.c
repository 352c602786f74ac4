/* Calls of Fortran's bindings, from C, beside calls of C: `fortran_calls MODE`, two ranks. Each rank prints what it called,
 * in lines `RANK CALLS FUNCTION`. */
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef MPI_Fint Int;
void mpi_isend_(void*, Int*, Int*, Int*, Int*, Int*, Int*, Int*);
void mpi_irecv_(void*, Int*, Int*, Int*, Int*, Int*, Int*, Int*);
void mpi_send_(void*, Int*, Int*, Int*, Int*, Int*, Int*);
void mpi_recv_init_(void*, Int*, Int*, Int*, Int*, Int*, Int*, Int*);
void mpi_startall_(Int*, Int*, Int*);
void mpi_request_free_(Int*, Int*);
void mpi_waitall_(Int*, Int*, Int*, Int*);
void mpi_waitany_(Int*, Int*, Int*, Int*, Int*);
void mpi_testall_(Int*, Int*, Int*, Int*, Int*);
void mpi_testsome_(Int*, Int*, Int*, Int*, Int*, Int*);

enum { kRequests = 40, kWays = 4, kTimes = 3 };

static int rank, other, kinds;
static struct {
  const char* name;
  int count;
} called[32];
static jmp_buf place;

static void count_call(const char* name) {
  int i = 0;
  while (i < kinds && strcmp(called[i].name, name) != 0) i++;
  if (i == kinds) called[kinds++].name = name;
  called[i].count++;
}
#define CALL(name, ...) (count_call("MPI_" #name), MPI_##name(__VA_ARGS__))
#define FORTRAN(name, base, ...) (count_call("MPI_" #name), mpi_##base##_(__VA_ARGS__))

/* Arguments of Fortran. */
static Int one = 1, all = kRequests, type, world, peer, error, statuses[kRequests * sizeof(MPI_Status) / sizeof(Int)];

/* Messages both ways: receives are posted and completed by either language, sends by Fortran. */
static void exchange(int way, int from_c, int to_c) {
  Int tag, some, flag, index, received[kRequests], sends[kRequests], receives[kRequests], indices[kRequests];
  MPI_Request handles[kRequests];
  for (tag = 0; tag < kRequests; tag++) {
    if (from_c) {
      CALL(Irecv, &received[tag], 1, MPI_INT, other, tag, MPI_COMM_WORLD, &handles[tag]);
      receives[tag] = MPI_Request_c2f(handles[tag]);
    } else {
      FORTRAN(Irecv, irecv, &received[tag], &one, &type, &peer, &tag, &world, &receives[tag], &error);
      if (to_c) handles[tag] = MPI_Request_f2c(receives[tag]);
    }
  }
  CALL(Barrier, MPI_COMM_WORLD);
  for (tag = 0; tag < kRequests; tag++)
    FORTRAN(Isend, isend, &tag, &one, &type, &peer, &tag, &world, &sends[tag], &error),
        FORTRAN(Waitall, waitall, &one, &sends[tag], statuses, &error);
  for (int done = 0; done < kRequests;) {
    if (to_c) {
      CALL(Waitall, kRequests, handles, MPI_STATUSES_IGNORE), done = kRequests;
    } else if (way == 0) {
      FORTRAN(Waitall, waitall, &all, receives, statuses, &error), done = kRequests;
    } else if (way == 1) {
      FORTRAN(Waitany, waitany, &all, receives, &index, statuses, &error), done++;
    } else if (way == 2) {
      FORTRAN(Testall, testall, &all, receives, &flag, statuses, &error), done = flag ? kRequests : 0;
    } else {
      FORTRAN(Testsome, testsome, &all, receives, &some, indices, statuses, &error), done += some;
    }
  }
  for (tag = 0; tag < kRequests; tag++)
    if (received[tag] != tag) abort();
  CALL(Barrier, MPI_COMM_WORLD);
}

/* Persistent receives of Fortran, which keep their handles. */
static void repeat(void) {
  Int tag, received[kRequests], receives[kRequests];
  for (tag = 0; tag < kRequests; tag++)
    FORTRAN(Recv_init, recv_init, &received[tag], &one, &type, &peer, &tag, &world, &receives[tag], &error);
  for (int time = 0; time < kTimes; time++) {
    FORTRAN(Startall, startall, &all, receives, &error);
    for (tag = 0; tag < kRequests; tag++) FORTRAN(Send, send, &tag, &one, &type, &peer, &tag, &world, &error);
    FORTRAN(Waitall, waitall, &all, receives, statuses, &error);
  }
  for (tag = 0; tag < kRequests; tag++) FORTRAN(Request_free, request_free, &receives[tag], &error);
}

static void leave(MPI_Comm* communicator, int* code, ...) {
  (void)communicator, (void)code;
  longjmp(place, 1);
}

static void fail_by_jump(void) {
  MPI_Errhandler handler;
  Int nobody = 99;
  MPI_Comm_create_errhandler(leave, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  for (volatile int i = 0; i < kTimes; i++) {
    if (setjmp(place) == 0) {
      FORTRAN(Send, send, &one, &one, &type, &nobody, &one, &world, &error);
      abort();
    }
    if (i == 1) {
      CALL(Barrier, MPI_COMM_WORLD);
    } else {
      exchange(0, 0, 0);
    }
  }
}

int main(int count, char** words) {
  const char* mode = count > 1 ? words[1] : "";
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  peer = other, type = MPI_Type_c2f(MPI_INT), world = MPI_Comm_c2f(MPI_COMM_WORLD);
  if (strcmp(mode, "ways") == 0) {
    for (int way = 0; way < kWays; way++) exchange(way, 0, 0), exchange(way, 1, 0);
    exchange(0, 0, 1);
    repeat();
  }
  if (strcmp(mode, "jump") == 0) fail_by_jump();
  for (int i = 0; i < kinds; i++) printf("%d %d %s\n", rank, called[i].count, called[i].name);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
