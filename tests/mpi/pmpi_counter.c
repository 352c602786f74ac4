/* Counts MPI calls and messages of a program, independently of elbowroom's tracer (lib/pmpi): what it counts must be in a
 * trace. Preload it before the tracer's libraries:
 *
 *   mpicc -shared -fPIC -o libcounter.so pmpi_counter.c -ldl
 *   PMPI_COUNTER=FOLDER LD_PRELOAD=libcounter.so:libelbow_trace_mpi.so ./app
 *
 * MPI_Finalize (and MPI_Abort, before it aborts) writes FOLDER/counter-RANK-PID.txt: a line `MPI_Send 50` for each function
 * that was called, and `sent MESSAGES BYTES`: messages that were posted to a process (MPI_PROC_NULL is none), those of
 * persistent and partitioned requests once for each start. Functions for large counts (MPI_Send_c) are not counted.
 *
 * Every function is forwarded with 13 integer words, whatever its prototype: all arguments of these functions are integers
 * or pointers, and the calling conventions of Linux on x86-64, AArch64 and POWER pass such words alike. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* S: a send with (buffer, count, type, destination); P: the same, persistent; C: counted only. */
// clang-format off
#define ALL(S, P, C) \
  S(Send) S(Bsend) S(Ssend) S(Rsend) S(Isend) S(Ibsend) S(Issend) S(Irsend) S(Sendrecv) S(Sendrecv_replace) \
  P(Psend_init) P(Send_init) P(Bsend_init) P(Ssend_init) P(Rsend_init) \
  C(Init) C(Init_thread) C(Finalize) C(Abort) C(Start) C(Startall) C(Request_free) C(Cancel) \
  C(Recv) C(Irecv) C(Recv_init) C(Precv_init) C(Pready) C(Parrived) C(Probe) C(Iprobe) C(Mprobe) C(Improbe) C(Mrecv) C(Imrecv) \
  C(Wait) C(Waitall) C(Waitany) C(Waitsome) C(Test) C(Testall) C(Testany) C(Testsome) \
  C(Barrier) C(Bcast) C(Gather) C(Gatherv) C(Scatter) C(Scatterv) C(Allgather) C(Allgatherv) C(Alltoall) C(Alltoallv) C(Alltoallw) \
  C(Reduce) C(Allreduce) C(Scan) C(Exscan) C(Reduce_scatter) C(Reduce_scatter_block) \
  C(Ibarrier) C(Ibcast) C(Igather) C(Iscatter) C(Iallgather) C(Iallgatherv) C(Ialltoall) C(Ialltoallv) C(Ireduce) C(Iallreduce) \
  C(Ireduce_scatter) C(Neighbor_allgather) C(Neighbor_alltoall) C(Neighbor_alltoallv) \
  C(Put) C(Get) C(Accumulate) C(Get_accumulate) C(Fetch_and_op) C(Compare_and_swap) C(Rput) C(Rget) \
  C(Win_create) C(Win_allocate) C(Win_allocate_shared) C(Win_free) C(Win_fence) C(Win_post) C(Win_start) C(Win_complete) \
  C(Win_wait) C(Win_lock) C(Win_unlock) C(Win_lock_all) C(Win_unlock_all) C(Win_flush) C(Win_flush_all) C(Win_sync) \
  C(Comm_rank) C(Comm_size) C(Comm_dup) C(Comm_idup) C(Comm_split) C(Comm_split_type) C(Comm_create) C(Comm_create_group) \
  C(Comm_free) C(Comm_group) C(Comm_remote_size) C(Comm_get_parent) C(Comm_spawn) C(Comm_spawn_multiple) \
  C(Comm_disconnect) C(Comm_set_errhandler) C(Intercomm_create) C(Intercomm_merge) \
  C(Cart_create) C(Cart_coords) C(Cart_rank) C(Cart_shift) C(Cart_sub) C(Dims_create) C(Dist_graph_create_adjacent) \
  C(Group_incl) C(Group_free) C(Type_contiguous) C(Type_vector) C(Type_commit) C(Type_free) C(Op_create) C(Op_free) \
  C(Pack) C(Unpack) C(Buffer_attach) C(Buffer_detach) C(Get_processor_name) C(Query_thread) C(Pcontrol)
// clang-format on

#define NUMBER(name) k##name,
#define NAME(name) "MPI_" #name,
enum Function { ALL(NUMBER, NUMBER, NUMBER) kFunctions };
enum Kind { kCounted, kSends, kPersistent };
static const char* const names[] = {ALL(NAME, NAME, NAME)};

typedef long Word;
typedef int (*Next)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);

static struct {
  MPI_Request request;
  long bytes;
} persistent[4096];
static int persistents, rank = -1;
static long calls[kFunctions], messages, bytes;
static pid_t process;
static __thread int depth;
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;

static void count_message(long size) {
  __atomic_fetch_add(&messages, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&bytes, size, __ATOMIC_RELAXED);
}

static long size_of(Word count, Word type) {
  MPI_Count size = 0;
  PMPI_Type_size_x((MPI_Datatype)type, &size);
  return (int)count * (long)size;
}

static void start(MPI_Request request) {
  pthread_mutex_lock(&table);
  for (int i = 0; i < persistents; ++i)
    if (persistent[i].request == request) count_message(persistent[i].bytes);
  pthread_mutex_unlock(&table);
}

static void forget(MPI_Request request) {
  pthread_mutex_lock(&table);
  for (int i = 0; i < persistents; ++i)
    if (persistent[i].request == request) persistent[i--] = persistent[--persistents];
  pthread_mutex_unlock(&table);
}

static void remember(MPI_Request request, long size) {
  pthread_mutex_lock(&table);
  if (persistents == sizeof persistent / sizeof *persistent) abort();
  persistent[persistents].request = request;
  persistent[persistents++].bytes = size;
  pthread_mutex_unlock(&table);
}

static void write_counts(void) {
  const char* folder = getenv("PMPI_COUNTER");
  char path[4096];
  if (folder == NULL || rank < 0 || process != getpid()) return;
  snprintf(path, sizeof path, "%s/counter-%d-%ld.txt", folder, rank, (long)process);
  FILE* file = fopen(path, "w");
  if (file == NULL) return;
  for (int i = 0; i < kFunctions; ++i)
    if (calls[i] > 0) fprintf(file, "%s %ld\n", names[i], calls[i]);
  fprintf(file, "sent %ld %ld\n", messages, bytes);
  fclose(file);
}

static int call(int function, enum Kind kind, Next* next, const Word* a) {
  if (*next == NULL) *next = (Next)dlsym(RTLD_NEXT, names[function]);
  if (depth++ == 0) {
    __atomic_fetch_add(&calls[function], 1, __ATOMIC_RELAXED);
    if (kind == kSends && (int)a[3] != MPI_PROC_NULL) count_message(size_of(a[1], a[2]));
    if (function == kStart) start(*(MPI_Request*)a[0]);
    for (int i = 0; function == kStartall && i < (int)a[0]; ++i) start(((MPI_Request*)a[1])[i]);
    if (function == kRequest_free) forget(*(MPI_Request*)a[0]);
    if (function == kFinalize || function == kAbort) write_counts();
  }
  const int result = (*next)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12]);
  if (--depth == 0 && kind == kPersistent) {
    const int parts = function == kPsend_init; /* has their number before the count, and an info before the request */
    if ((int)a[3 + parts] != MPI_PROC_NULL)
      remember(*(MPI_Request*)a[6 + 2 * parts], (parts ? (int)a[1] : 1) * size_of(a[1 + parts], a[2 + parts]));
  }
  if (depth == 0 && (function == kInit || function == kInit_thread)) {
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    process = getpid();
  }
  return result;
}

#define WORDS Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, Word k, Word l, Word m
#define WRAP(name, kind)                                                                      \
  int counted_##name(WORDS) __asm__("MPI_" #name);                                            \
  int counted_##name(WORDS) {                                                                 \
    static Next next;                                                                         \
    return call(k##name, kind, &next, (const Word[]){a, b, c, d, e, f, g, h, i, j, k, l, m}); \
  }
#define SENDS(name) WRAP(name, kSends)
#define PERSISTENT(name) WRAP(name, kPersistent)
#define COUNTED(name) WRAP(name, kCounted)
ALL(SENDS, PERSISTENT, COUNTED)
