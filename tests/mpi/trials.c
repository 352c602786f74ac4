/* Kinds of communication beside sends and receives, by two ranks. The program counts itself what it calls and sends:
 *
 *     rank 0 MPI_Put 3 600        calls, and the bytes that these are about
 *     rank 0 sent 4200            bytes that the rank sends, by all calls and starts of persistent requests
 *
 * trials calls                    all in one job
 * trials spawn                    messages to processes that it starts
 * trials sessions                 without MPI_Init
 * trials session-init             a session, and MPI_Init while it is open
 * trials init-session             MPI_Init, and a session */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMost = 64, kTimes = 3, kInts = 100, kBytes = kInts * sizeof(int) };

static struct {
  const char* name;
  long calls, bytes;
} counts[kMost];
static int counted, rank, other;
static long sent;

static void count(const char* name, long bytes) {
  int i = 0;
  while (i < counted && strcmp(counts[i].name, name) != 0) ++i;
  if (i == counted) counts[counted++].name = name;
  counts[i].calls += 1;
  counts[i].bytes += bytes;
}

static void print_counts(void) {
  for (int i = 0; i < counted; ++i)
    printf("rank %d %s %ld %ld\n", rank, counts[i].name, counts[i].calls, counts[i].bytes);
  printf("rank %d sent %ld\n", rank, sent);
  fflush(stdout);
}

/* SEND: a call that sends so many bytes; CALL: one that is about so many, and sends none. */
#define CALL(name, bytes, arguments) (count("MPI_" #name, bytes), MPI_##name arguments)
#define SEND(name, bytes, arguments) (sent += (bytes), CALL(name, bytes, arguments))
#define NONE MPI_STATUS_IGNORE

static int out[4 * kInts], in[4 * kInts];

static void exchanges(MPI_Comm comm) {
  SEND(Sendrecv_replace, kBytes, (out, kInts, MPI_INT, other, 1, other, 1, comm, NONE));
#if MPI_VERSION >= 4
  MPI_Request request;
  MPI_Count large = kInts;
  SEND(Isendrecv, kBytes, (out, kInts, MPI_INT, other, 2, in, 2 * kInts, MPI_INT, other, 2, comm, &request));
  MPI_Wait(&request, NONE);
  SEND(Isendrecv_replace, kBytes, (out, kInts, MPI_INT, other, 3, other, 3, comm, &request));
  MPI_Wait(&request, NONE);
#ifdef HAVE_LARGE_COUNTS
  SEND(Isend_c, kBytes, (out, large, MPI_INT, other, 4, comm, &request));
  MPI_Recv_c(in, large, MPI_INT, other, 4, comm, NONE);
  MPI_Wait(&request, NONE);
  SEND(Allreduce_c, kBytes, (out, in, large, MPI_INT, MPI_SUM, comm));
#else
  (void)large;
#endif
#endif
}

static void parts(MPI_Comm comm) {
#if MPI_VERSION >= 4
  MPI_Request request;
  if (rank == 0) {
    MPI_Psend_init(out, 4, kInts, MPI_INT, other, 5, comm, MPI_INFO_NULL, &request);
  } else {
    MPI_Precv_init(in, 4, kInts, MPI_INT, other, 5, comm, MPI_INFO_NULL, &request);
  }
  for (int i = 0; i < kTimes; ++i) {
    MPI_Start(&request);
    for (int part = 0; part < 4 && rank == 0; ++part) CALL(Pready, 0, (part, request));
    MPI_Wait(&request, NONE);
    sent += rank == 0 ? 4 * kBytes : 0;
  }
  MPI_Request_free(&request);
#else
  (void)comm;
#endif
}

static void one_sided(MPI_Comm comm) {
  int* memory;
  MPI_Win window;
  MPI_Request request;
  MPI_Win_allocate(4 * kBytes, sizeof(int), MPI_INFO_NULL, comm, &memory, &window);
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < kTimes; ++i) {
    SEND(Put, kBytes, (out, kInts, MPI_INT, other, 0, kInts, MPI_INT, window));
    MPI_Win_flush(other, window);
    SEND(Get, kBytes / 2, (in, kInts / 2, MPI_INT, other, 0, kInts / 2, MPI_INT, window));
    SEND(Accumulate, kBytes, (out, kInts, MPI_INT, other, kInts, kInts, MPI_INT, MPI_SUM, window));
    SEND(Get_accumulate, kBytes,
         (out, kInts, MPI_INT, in, kInts, MPI_INT, other, 2 * kInts, kInts, MPI_INT, MPI_SUM, window));
    SEND(Fetch_and_op, (long)sizeof(int), (out, in, MPI_INT, other, 0, MPI_SUM, window));
    SEND(Compare_and_swap, (long)sizeof(int), (out, in, in + 1, MPI_INT, other, 0, window));
    SEND(Rput, kBytes, (out, kInts, MPI_INT, other, 0, kInts, MPI_INT, window, &request));
    MPI_Wait(&request, NONE);
    CALL(Put, 0, (out, kInts, MPI_INT, MPI_PROC_NULL, 0, kInts, MPI_INT, window));
  }
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
}

/* A row of two processes: each has one neighbour, and nobody on its other side. */
static void neighbours(MPI_Comm comm) {
  const int size = 2, open = 0;
  int counts_of[2] = {kInts, kInts}, places[2] = {0, kInts};
  MPI_Aint bytes[2] = {0, kBytes};
  MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  MPI_Comm row;
  MPI_Request request;
  MPI_Cart_create(comm, 1, &size, &open, 0, &row);
  SEND(Neighbor_alltoall, kBytes, (out, kInts, MPI_INT, in, kInts, MPI_INT, row));
  SEND(Neighbor_alltoallv, kBytes, (out, counts_of, places, MPI_INT, in, counts_of, places, MPI_INT, row));
  SEND(Neighbor_alltoallw, kBytes, (out, counts_of, bytes, types, in, counts_of, bytes, types, row));
  SEND(Ineighbor_allgather, kBytes, (out, kInts, MPI_INT, in, kInts, MPI_INT, row, &request));
  MPI_Wait(&request, NONE);
  MPI_Comm_free(&row);
}

static void collectives(MPI_Comm comm) {
  int counts_of[2] = {kInts, kInts}, places[2] = {0, kInts}, bytes[2] = {0, kBytes};
  MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  SEND(Alltoallw, 2 * kBytes, (out, counts_of, bytes, types, in, counts_of, bytes, types, comm));
  SEND(Alltoallv, 2 * kBytes, (MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, in, counts_of, places, MPI_INT, comm));
  SEND(Allgatherv, kBytes, (MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, counts_of, places, MPI_INT, comm));
}

/* Between two groups of one process each. */
static void between_groups(MPI_Comm comm) {
  MPI_Comm own, inter;
  MPI_Comm_split(comm, rank, 0, &own);
  MPI_Intercomm_create(own, 0, comm, other, 6, &inter);
  if (rank == 0) {
    SEND(Send, kBytes, (out, kInts, MPI_INT, 0, 7, inter));
  } else {
    MPI_Recv(in, kInts, MPI_INT, 0, 7, inter, NONE);
  }
  SEND(Bcast, kBytes, (out, kInts, MPI_INT, rank == 0 ? MPI_ROOT : 0, inter));
  MPI_Comm_free(&inter);
  MPI_Comm_free(&own);
}

static void all_calls(MPI_Comm comm) {
  for (int i = 0; i < kTimes; ++i) exchanges(comm);
  parts(comm);
  one_sided(comm);
  neighbours(comm);
  collectives(comm);
  between_groups(comm);
}

static void spawn(char* program) {
  char* arguments[] = {"spawn", NULL};
  MPI_Comm parent, inter;
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    for (int i = 0; i < kTimes && rank == 0; ++i) {
      MPI_Recv(in, kInts, MPI_INT, 0, 8, parent, NONE);
      MPI_Send(in, kInts, MPI_INT, 0, 9, parent);
    }
    MPI_Bcast(in, kInts, MPI_INT, 0, parent);
    MPI_Comm_disconnect(&parent);
    return;
  }
  MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
  for (int i = 0; i < kTimes && rank == 0; ++i) {
    SEND(Send, kBytes, (out, kInts, MPI_INT, 0, 8, inter));
    CALL(Recv, kBytes, (in, kInts, MPI_INT, 0, 9, inter, NONE));
  }
  if (rank == 0) {
    SEND(Bcast, kBytes, (out, kInts, MPI_INT, MPI_ROOT, inter));
  } else {
    CALL(Bcast, 0, (out, kInts, MPI_INT, MPI_PROC_NULL, inter));
  }
  MPI_Comm_disconnect(&inter);
  print_counts();
}

#ifdef MPI_SESSION_NULL
static MPI_Session open_session(MPI_Group* world) {
  MPI_Session session;
  if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) != MPI_SUCCESS) exit(9);
  MPI_Group_from_session_pset(session, "mpi://WORLD", world);
  MPI_Group_rank(*world, &rank);
  other = 1 - rank;
  return session;
}

static void exchange_times(MPI_Comm comm) {
  for (int i = 0; i < kTimes; ++i)
    SEND(Sendrecv, kBytes, (out, kInts, MPI_INT, other, 1, in, kInts, MPI_INT, other, 1, comm, NONE));
}

/* Messages over a communicator of the session's own, and over one that is made of it. */
static MPI_Session exchange_in_session(const char* tag) {
  MPI_Group group;
  MPI_Comm comm, made;
  MPI_Session session = open_session(&group);
  CALL(Comm_create_from_group, 0, (group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
  MPI_Group_free(&group);
  exchange_times(comm);
  CALL(Comm_dup, 0, (comm, &made));
  exchange_times(made);
  SEND(Allreduce, kBytes, (out, in, kInts, MPI_INT, MPI_SUM, made));
  MPI_Comm_free(&made);
  MPI_Comm_free(&comm);
  return session;
}

/* Between two groups of one process each. */
static void exchange_between_groups(MPI_Group world) {
  MPI_Group own, remote;
  MPI_Comm inter;
  MPI_Group_incl(world, 1, &rank, &own);
  MPI_Group_incl(world, 1, &other, &remote);
  CALL(Intercomm_create_from_groups, 0, (own, 0, remote, 0, "groups", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &inter));
  SEND(Sendrecv, kBytes, (out, kInts, MPI_INT, 0, 2, in, kInts, MPI_INT, 0, 2, inter, NONE));
  MPI_Comm_free(&inter);
  MPI_Group_free(&own);
  MPI_Group_free(&remote);
}

/* Sessions without MPI_Init: one rank looks around, several are open at once. */
static int sessions(void) {
  MPI_Group group, looked_at;
  MPI_Session all = open_session(&group);
  if (rank == 0) {
    MPI_Session look = open_session(&looked_at);
    MPI_Group_free(&looked_at);
    MPI_Session_finalize(&look);
  }
  MPI_Session first = exchange_in_session("first"), second = exchange_in_session("second");
  MPI_Session_finalize(&first);
  MPI_Session third = exchange_in_session("first");
  exchange_between_groups(group);
  MPI_Group_free(&group);
  MPI_Session_finalize(&all);
  MPI_Session_finalize(&third);
  MPI_Session_finalize(&second);
  print_counts();
  return 0; /* nothing makes the ranks wait for each other here, and launchers end a job that fails */
}

/* MPI_Init while a session is open, which is closed before MPI_Finalize. */
static int init_after_session(void) {
  MPI_Session before = exchange_in_session("before");
  MPI_Init(NULL, NULL);
  exchange_times(MPI_COMM_WORLD);
  MPI_Session_finalize(&before);
  exchange_times(MPI_COMM_WORLD);
  print_counts();
  MPI_Finalize();
  return 3;
}

static void sessions_after_init(void) {
  exchange_times(MPI_COMM_WORLD);
  MPI_Session inside = exchange_in_session("inside");
  MPI_Session_finalize(&inside);
  exchange_times(MPI_COMM_WORLD);
}
#else
static int sessions(void) { return 4; }
static int init_after_session(void) { return 4; }
static void sessions_after_init(void) { exit(4); }
#endif

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "calls";
  if (strcmp(mode, "sessions") == 0) return sessions();
  if (strcmp(mode, "session-init") == 0) return init_after_session();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  if (strcmp(mode, "spawn") == 0) {
    spawn(argv[0]);
  } else if (strcmp(mode, "init-session") == 0) {
    sessions_after_init();
    print_counts();
  } else {
    all_calls(MPI_COMM_WORLD);
    print_counts();
  }
  MPI_Finalize();
  return 3;
}
