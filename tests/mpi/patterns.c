/* Communication patterns of well-known programs, on four processes:
 *
 *   patterns PATTERN...        cg ft lu mg is ep lulesh rma persistent inter threads
 *
 * Rank 0 prints each pattern's name and a checksum of what all processes received. It ends with 0, with 1 where a result is
 * wrong, and with 77 where this MPI does not have what is needed (stderr says what). */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORLD MPI_COMM_WORLD
enum { kMost = 20000 };
static int rank, size;
static long checksum;

static void must(int holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "rank %d: wrong: %s\n", rank, what);
    MPI_Abort(WORLD, 1);
  }
}

static void fill(double* values, int count, int seed) {
  for (int i = 0; i < count; ++i) values[i] = rank * 1000 + seed + i % 17;
}

/* What `source` filled with that seed. */
static long add_up(const double* values, int count, int source, int seed) {
  long sum = 0;
  for (int i = 0; i < count; ++i) {
    must(values[i] == source * 1000 + seed + i % 17, "what was received");
    sum += (long)values[i];
  }
  return sum;
}

/* Asks some times, then waits: a program that asks without end would fill its trace with that. */
static void complete(MPI_Request* request) {
  int flag = 0;
  for (int polls = 0; !flag && polls < 20; ++polls) MPI_Test(request, &flag, MPI_STATUS_IGNORE);
  if (!flag) MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* CG: halves are exchanged along rows, one receive in advance. */
static void cg(void) {
  static double out[kMost], in[kMost];
  for (int step = 0; step < 20; ++step) {
    for (int bit = 1; bit < size; bit *= 2) {
      const int partner = rank ^ bit, count = 10 << (step % 10);
      MPI_Request request;
      MPI_Status status;
      fill(out, count, step);
      MPI_Irecv(in, count, MPI_DOUBLE, partner, 1, WORLD, &request);
      MPI_Send(out, count, MPI_DOUBLE, partner, 1, WORLD);
      MPI_Wait(&request, &status);
      checksum += add_up(in, count, partner, step);
    }
  }
}

/* FT: transposes, of all and along rows and columns. */
static void ft(void) {
  static double out[kMost], in[kMost];
  const int count = 500;
  MPI_Comm row;
  MPI_Comm_split(WORLD, rank / 2, rank, &row);
  for (int step = 0; step < 5; ++step) {
    fill(out, count * size, step);
    MPI_Alltoall(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, WORLD);
    checksum += (long)in[count * size - 1];
    MPI_Alltoall(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, row);
    checksum += (long)in[2 * count - 1];
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, count, MPI_DOUBLE, row);
    checksum += (long)in[2 * count - 1];
  }
  MPI_Comm_free(&row);
}

/* LU: a wave front of many small messages over a grid of two by two. */
static void lu(void) {
  double message[5];
  for (int step = 0; step < 60; ++step) {
    if (rank % 2 == 1) {
      MPI_Recv(message, 5, MPI_DOUBLE, rank - 1, 2, WORLD, MPI_STATUS_IGNORE);
      checksum += add_up(message, 5, rank - 1, step);
    }
    if (rank >= 2) {
      MPI_Recv(message, 5, MPI_DOUBLE, MPI_ANY_SOURCE, 3, WORLD, MPI_STATUS_IGNORE);
      checksum += add_up(message, 5, rank - 2, step);
    }
    fill(message, 5, step);
    if (rank % 2 == 0) MPI_Send(message, 5, MPI_DOUBLE, rank + 1, 2, WORLD);
    if (rank < 2) MPI_Send(message, 5, MPI_DOUBLE, rank + 2, 3, WORLD);
  }
}

/* MG and BT: faces of a periodic grid; levels from large to small, receives from whoever comes first. */
static void mg(void) {
  static double out[6][kMost], in[6][kMost];
  const int dims[3] = {2, 2, 1}, periods[3] = {1, 1, 1};
  MPI_Comm grid;
  MPI_Cart_create(WORLD, 3, dims, periods, 0, &grid);
  for (int level = 0; level < 8; ++level) {
    const int count = kMost >> (2 * level);
    MPI_Request requests[12];
    int from[6];
    for (int face = 0; face < 6; ++face) {
      int to;
      MPI_Cart_shift(grid, face / 2, face % 2 ? 1 : -1, &from[face], &to);
      MPI_Irecv(in[face], kMost, MPI_DOUBLE, from[face], face, grid, &requests[face]);
      fill(out[face], count, level);
      MPI_Isend(out[face], count, MPI_DOUBLE, to, face, grid, &requests[6 + face]);
    }
    MPI_Waitall(12, requests, MPI_STATUSES_IGNORE);
    for (int face = 0; face < 6; ++face) checksum += add_up(in[face], count, from[face], level);
  }
  MPI_Comm_free(&grid);
}

/* IS: buckets of different sizes. */
static void is(void) {
  static int out[kMost], in[kMost];
  for (int step = 0; step < 5; ++step) {
    int counts[16], places[16], others[16], sources[16], all = 0, mine = 0;
    for (int i = 0; i < size; ++i) {
      counts[i] = 100 * (rank + 1) + 10 * i + step;
      places[i] = mine;
      mine += counts[i];
    }
    for (int i = 0; i < mine; ++i) out[i] = rank + i;
    MPI_Alltoall(counts, 1, MPI_INT, others, 1, MPI_INT, WORLD);
    for (int i = 0; i < size; ++i) {
      sources[i] = all;
      all += others[i];
    }
    MPI_Alltoallv(out, counts, places, MPI_INT, in, others, sources, MPI_INT, WORLD);
    MPI_Allreduce(MPI_IN_PLACE, in, 10, MPI_INT, MPI_SUM, WORLD);
    checksum += in[0] + in[all - 1];
  }
}

/* EP: hardly anything, at the end; and what else is reduced, in place and not. */
static void ep(void) {
  double sums[10], all[10], parts[10];
  const int counts[4] = {1, 2, 3, 4};
  fill(sums, 10, 0);
  MPI_Allreduce(sums, all, 10, MPI_DOUBLE, MPI_SUM, WORLD);
  MPI_Reduce(rank == 2 ? MPI_IN_PLACE : sums, sums, 10, MPI_DOUBLE, MPI_MAX, 2, WORLD);
  MPI_Bcast(sums, 10, MPI_DOUBLE, 2, WORLD);
  MPI_Reduce_scatter(sums, parts, counts, MPI_DOUBLE, MPI_SUM, WORLD);
  MPI_Reduce_scatter(MPI_IN_PLACE, sums, counts, MPI_DOUBLE, MPI_SUM, WORLD);
  MPI_Scan(parts, sums, 1, MPI_DOUBLE, MPI_SUM, WORLD);
  MPI_Barrier(WORLD);
  checksum += (long)(all[9] + sums[0] + parts[0]);
}

/* LULESH: faces, edges and corners of a cube to 26 neighbours, some of which are the process itself. */
static void lulesh(void) {
  static double out[27][400], in[27][400];
  for (int step = 0; step < 10; ++step) {
    MPI_Request requests[52];
    int from[27], counts[27], made = 0;
    for (int way = 0; way < 27; ++way) {
      const int x = way % 3 - 1, y = way / 3 % 3 - 1, z = way / 9 - 1, along = abs(x) + abs(y) + abs(z);
      if (along == 0) continue;
      from[way] = (rank % 2 - x + 2) % 2 + 2 * ((rank / 2 - y + 2) % 2);
      counts[way] = along == 1 ? 400 : along == 2 ? 20 : 1;
      MPI_Irecv(in[way], counts[way], MPI_DOUBLE, from[way], way, WORLD, &requests[made++]);
    }
    for (int way = 0; way < 27; ++way) {
      const int x = way % 3 - 1, y = way / 3 % 3 - 1;
      if (way == 13) continue;
      fill(out[way], counts[way], step);
      MPI_Isend(out[way], counts[way], MPI_DOUBLE, (rank % 2 + x + 2) % 2 + 2 * ((rank / 2 + y + 2) % 2), way, WORLD,
                &requests[made++]);
    }
    MPI_Waitall(made, requests, MPI_STATUSES_IGNORE);
    for (int way = 0; way < 27; ++way) {
      if (way != 13) checksum += add_up(in[way], counts[way], from[way], step);
    }
    double least = step, all;
    MPI_Allreduce(&least, &all, 1, MPI_DOUBLE, MPI_MIN, WORLD);
  }
}

/* Memory of others: fences; post, start, complete, wait; locks and flushes. */
static void rma(void) {
  long *memory, one = 1, before = 0;
  MPI_Win window;
  MPI_Group all, next, last;
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Win_allocate(8 * sizeof(long), sizeof(long), MPI_INFO_NULL, WORLD, &memory, &window);
  memset(memory, 0, 8 * sizeof(long));
  MPI_Comm_group(WORLD, &all);
  MPI_Group_incl(all, 1, &to, &next);
  MPI_Group_incl(all, 1, &from, &last);
  MPI_Win_fence(0, window);
  MPI_Put(&one, 1, MPI_LONG, to, 0, 1, MPI_LONG, window);
  MPI_Win_fence(0, window);
  checksum += memory[0];
  MPI_Win_post(last, 0, window);
  MPI_Win_start(next, 0, window);
  MPI_Accumulate(&one, 1, MPI_LONG, to, 1, 1, MPI_LONG, MPI_SUM, window);
  MPI_Win_complete(window);
  MPI_Win_wait(window);
  checksum += memory[1];
  MPI_Win_lock(MPI_LOCK_SHARED, to, 0, window);
  MPI_Fetch_and_op(&one, &before, MPI_LONG, to, 2, MPI_SUM, window);
  MPI_Win_flush(to, window);
  MPI_Get(&before, 1, MPI_LONG, to, 2, 1, MPI_LONG, window);
  MPI_Win_unlock(to, window);
  checksum += before;
  MPI_Group_free(&last);
  MPI_Group_free(&next);
  MPI_Group_free(&all);
  MPI_Win_free(&window);
}

/* Requests that are started again and again, and completed in different ways; in parts where MPI has these. */
static void persistent(void) {
  static double out[2][3000], in[2][3000];
  MPI_Request requests[4];
  const int peers[2] = {(rank + 1) % size, (rank + size - 1) % size};
  for (int i = 0; i < 2; ++i) {
    MPI_Recv_init(in[i], 3000, MPI_DOUBLE, peers[i], 1 - i, WORLD, &requests[i]);
    MPI_Send_init(out[i], 1500 * (i + 1), MPI_DOUBLE, peers[i], i, WORLD, &requests[2 + i]);
  }
  for (int step = 0; step < 12; ++step) {
    int indices[4];
    for (int i = 0; i < 2; ++i) fill(out[i], 1500 * (i + 1), step);
    MPI_Startall(4, requests);
    if (step % 3 == 0) {
      MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    } else if (step % 3 == 1) {
      for (int left = 4, count; left > 0; left -= count)
        MPI_Waitsome(4, requests, &count, indices, MPI_STATUSES_IGNORE);
    } else {
      for (int i = 0; i < 4; ++i) {
        complete(&requests[i]);
      }
    }
    for (int i = 0; i < 2; ++i) checksum += add_up(in[i], 1500 * (2 - i), peers[i], step);
  }
  for (int i = 0; i < 4; ++i) MPI_Request_free(&requests[i]);
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
  MPI_Precv_init(in[0], 4, 100, MPI_DOUBLE, peers[1], 5, WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Psend_init(out[0], 4, 100, MPI_DOUBLE, peers[0], 5, WORLD, MPI_INFO_NULL, &requests[1]);
  for (int step = 0; step < 3; ++step) {
    fill(out[0], 400, step);
    MPI_Startall(2, requests);
    for (int part = 0; part < 4; ++part) MPI_Pready(part, requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    checksum += add_up(in[0], 400, peers[1], step);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
#endif
}

/* `count` ints at the end of a page, behind which nothing may be read. */
static int* guarded(int count, int value) {
  const long page = sysconf(_SC_PAGESIZE);
  char* pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(pages + page, page, PROT_NONE);
  int* ints = (int*)(pages + page) - count;
  for (int i = 0; i < count; ++i) ints[i] = value;
  return ints;
}

/* Two groups, one of a single process: messages and all collective operations between them. Arguments that stand for nothing
 * are what no MPI could read. */
static void inter(void) {
  const int alone = rank == 0, own = alone ? 1 : size - 1, other = size - own;
  const int share = 6 * (size - 1), kept = share / own;
  const int root = alone ? MPI_ROOT : 0, back = alone ? 0 : rank == 1 ? MPI_ROOT : MPI_PROC_NULL;
  int *out = guarded(share * 4, rank + 1), *in = guarded(share * 4, 0);
  int* const counts = guarded(other, 6);
  int* const places = guarded(other, 0);
  int* const parts = guarded(own, kept);
  MPI_Datatype nothing;
  MPI_Comm part, both, merged;
  MPI_Request request;
  memset(&nothing, 0x5A, sizeof nothing);
  MPI_Comm_split(WORLD, alone, rank, &part);
  MPI_Intercomm_create(part, 0, WORLD, alone ? 1 : 0, 8, &both);
  for (int i = 0; i < other; ++i) {
    MPI_Sendrecv(out, 5, MPI_INT, i, 4, in, 5, MPI_INT, MPI_ANY_SOURCE, 4, both, MPI_STATUS_IGNORE);
    checksum += in[4];
  }
  MPI_Barrier(both);
  MPI_Bcast(out, 5, MPI_INT, back, both);
  /* To the single process, and back from rank 1. */
  MPI_Gather(alone ? NULL : out, 6, alone ? nothing : MPI_INT, alone ? in : NULL, 6, alone ? MPI_INT : nothing, root,
             both);
  MPI_Gather(alone ? out : NULL, 6, alone ? MPI_INT : nothing, rank == 1 ? in : NULL, 6, rank == 1 ? MPI_INT : nothing,
             back, both);
  checksum += in[5];
  MPI_Gatherv(alone ? NULL : out, 6, alone ? nothing : MPI_INT, alone ? in : NULL, alone ? counts : NULL,
              alone ? places : NULL, alone ? MPI_INT : nothing, root, both);
  MPI_Scatter(alone ? out : NULL, 6, alone ? MPI_INT : nothing, alone ? NULL : in, 6, alone ? nothing : MPI_INT, root,
              both);
  checksum += in[5];
  MPI_Scatterv(alone ? out : NULL, alone ? counts : NULL, alone ? places : NULL, alone ? MPI_INT : nothing,
               alone ? NULL : in, 6, alone ? nothing : MPI_INT, root, both);
  MPI_Reduce(out, in, 6, MPI_INT, MPI_SUM, root, both);
  checksum += in[5];
  MPI_Allgather(out, 6, MPI_INT, in, 6, MPI_INT, both);
  MPI_Allgatherv(out, 6, MPI_INT, in, counts, places, MPI_INT, both);
  MPI_Alltoall(out, 6, MPI_INT, in, 6, MPI_INT, both);
  MPI_Alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, both);
  MPI_Allreduce(out, in, 6, MPI_INT, MPI_SUM, both);
  checksum += in[5];
  MPI_Reduce_scatter(out, in, parts, MPI_INT, MPI_SUM, both);
  checksum += in[kept - 1];
  MPI_Ireduce_scatter(out, in, parts, MPI_INT, MPI_SUM, both, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  checksum += in[kept - 1];
  MPI_Reduce_scatter_block(out, in, kept, MPI_INT, MPI_SUM, both);
  checksum += in[kept - 1];
  MPI_Intercomm_merge(both, alone, &merged);
  MPI_Allreduce(MPI_IN_PLACE, out, 6, MPI_INT, MPI_SUM, merged);
  checksum += out[5];
  MPI_Comm_free(&merged);
  MPI_Comm_free(&both);
  MPI_Comm_free(&part);
}

enum { kThreads = 4, kWindow = 16 };
static long thread_sums[kThreads];

static int say_nothing(void* state, MPI_Status* status) {
  (void)state;
  MPI_Status_set_elements(status, MPI_BYTE, 0);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
static int free_nothing(void* state) { return state == NULL ? MPI_SUCCESS : MPI_ERR_OTHER; }
static int cancel_nothing(void* state, int complete) { return state == NULL || complete ? MPI_SUCCESS : MPI_ERR_OTHER; }

/* A request that is of no message. */
static void wait_for_nothing(void) {
  MPI_Request request;
  MPI_Grequest_start(say_nothing, free_nothing, cancel_nothing, NULL, &request);
  MPI_Grequest_complete(request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Pairs of processes; each thread has a tag of its own, and messages of a length that no other thread has then. Short sends
 * may share one handle; synchronous ones have their own. */
static void* chat(void* which) {
  const int thread = (int)(size_t)which, partner = rank ^ 1;
  static double room[kThreads][2][kWindow][64];
  double(*out)[64] = room[thread][0], (*in)[64] = room[thread][1];
  for (int step = 0; step < 150; ++step) {
    MPI_Request requests[2 * kWindow];
    for (int i = 0; i < kWindow; ++i) {
      MPI_Irecv(in[i], 64, MPI_DOUBLE, partner, 20 + thread, WORLD, &requests[i]);
    }
    for (int i = 0; i < kWindow; ++i) {
      fill(out[i], 1 + thread + (step + i) % 60, step);
      (i % 2 == 0 ? MPI_Isend : MPI_Issend)(out[i], 1 + thread + (step + i) % 60, MPI_DOUBLE, partner, 20 + thread, WORLD,
                                            &requests[kWindow + i]);
    }
    wait_for_nothing();
    if (step % 3 == 0) {
      MPI_Waitall(2 * kWindow, requests, MPI_STATUSES_IGNORE);
    } else {
      for (int i = 0; i < 2 * kWindow; ++i) {
        step % 3 == 1 ? (void)MPI_Wait(&requests[i], MPI_STATUS_IGNORE) : complete(&requests[i]);
      }
    }
    for (int i = 0; i < kWindow; ++i) {
      thread_sums[thread] += add_up(in[i], 1 + thread + (step + i) % 60, partner, step);
    }
  }
  return NULL;
}

static void threads(void) {
  pthread_t others[kThreads];
  int level;
  MPI_Query_thread(&level);
  if (level != MPI_THREAD_MULTIPLE) {
    if (rank == 0) fprintf(stderr, "this MPI does not grant MPI_THREAD_MULTIPLE\n");
    MPI_Finalize();
    exit(77);
  }
  for (size_t i = 0; i < kThreads; ++i) pthread_create(&others[i], NULL, chat, (void*)i);
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(others[i], NULL);
    checksum += thread_sums[i];
  }
}

static const struct {
  const char* name;
  void (*run)(void);
} patterns[] = {{"cg", cg},         {"ft", ft},          {"lu", lu},
                {"mg", mg},         {"is", is},          {"ep", ep},
                {"lulesh", lulesh}, {"rma", rma},        {"persistent", persistent},
                {"inter", inter},   {"threads", threads}};

int main(int count, char** words) {
  int level;
  const int several = count > 1 && strcmp(words[count - 1], "threads") == 0;
  MPI_Init_thread(&count, &words, several ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_size(WORLD, &size);
  must(size == 4, "four processes are needed");
  for (int word = 1; word < count; ++word) {
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; ++i) {
      if (strcmp(words[word], patterns[i].name) == 0) {
        long all = 0;
        checksum = 0;
        patterns[i].run();
        MPI_Reduce(&checksum, &all, 1, MPI_LONG, MPI_SUM, 0, WORLD);
        if (rank == 0) printf("%s %ld\n", patterns[i].name, all);
      }
    }
  }
  MPI_Finalize();
  return 0;
}
