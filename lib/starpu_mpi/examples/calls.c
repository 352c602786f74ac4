/* The calls of StarPU-MPI one by one, each with data that show whether it did what StarPU's manual says: CALLS CASE. Rank 0 prints
 * what it got. Cases that are wrong on purpose: `sizes`, `order`, `missing`, `version`, `unnamed`. */
#ifdef ELBOWROOM_BROADCASTS
#include "elbowroom/starpu_mpi.h"
#else
#include <starpu_mpi.h>
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kCount = 50000, kHandles = 3 };

static int rank, ranks;
static long memory[kHandles][kCount];
static starpu_data_handle_t handles[kHandles];
static volatile int called;

static void count_call(void* argument) { called += *(const int*)argument; }

static void add(void* buffers[], void* argument) {
  long* const numbers = (long*)STARPU_VECTOR_GET_PTR(buffers[0]);
  long more = 0;
  starpu_codelet_unpack_args(argument, &more);
  for (unsigned i = 0; i < STARPU_VECTOR_GET_NX(buffers[0]); ++i) numbers[i] += more;
}

/* b += a, and b *= 2 so that the order of tasks can be seen in it. */
static void take(void* buffers[], void* argument) {
  const long* const a = (const long*)STARPU_VECTOR_GET_PTR(buffers[0]);
  long* const b = (long*)STARPU_VECTOR_GET_PTR(buffers[1]);
  (void)argument;
  for (unsigned i = 0; i < STARPU_VECTOR_GET_NX(buffers[1]); ++i) b[i] = 2 * (b[i] + a[i]);
}

static struct starpu_codelet adds = {.cpu_funcs = {add}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "add"};
static struct starpu_codelet takes = {
    .cpu_funcs = {take}, .nbuffers = 2, .modes = {STARPU_R, STARPU_RW}, .name = "take"};

static void insert_add(int data, long more) {
  starpu_mpi_task_insert(MPI_COMM_WORLD, &adds, STARPU_VALUE, &more, sizeof more, STARPU_RW, handles[data], 0);
}

static void insert_take(int from, int to) {
  starpu_mpi_task_insert(MPI_COMM_WORLD, &takes, STARPU_R, handles[from], STARPU_RW, handles[to], 0);
}

/* Data i belong to rank i, modulo their number. */
static void register_all(unsigned count) {
  for (int i = 0; i < kHandles; ++i) {
    const int owner = i % ranks, own = owner == rank;
    starpu_vector_data_register(&handles[i], own ? STARPU_MAIN_RAM : -1, own ? (uintptr_t)memory[i] : 0, count,
                                sizeof memory[i][0]);
    starpu_mpi_data_register(handles[i], 100 + i, owner);
  }
}

static void unregister_all(void) {
  for (int i = 0; i < kHandles; ++i) starpu_data_unregister(handles[i]);
}

static long first_of(int data) {
  starpu_mpi_get_data_on_node(MPI_COMM_WORLD, handles[data], 0);
  long value = 0;
  if (rank == 0) {
    starpu_data_acquire(handles[data], STARPU_R);
    const long* const numbers = (const long*)starpu_vector_get_local_ptr(handles[data]);
    value = numbers[0] == numbers[kCount - 1] ? numbers[0] : -1;
    starpu_data_release(handles[data]);
  }
  return value;
}

static long tasks(void) {
  insert_add(0, 1);
  for (int data = 1; data < kHandles; ++data) insert_take(0, data); /* 2 */
  insert_add(0, 2);
  for (int data = 1; data < kHandles; ++data) insert_take(0, data); /* 10 */
  insert_take(2, 0);                                                /* 26 */
  return 100 * first_of(0) + first_of(1);
}

/* A task on another rank than the owner of what it writes. */
static long elsewhere(void) {
  long more = 4;
  starpu_mpi_task_insert(MPI_COMM_WORLD, &adds, STARPU_VALUE, &more, sizeof more, STARPU_RW, handles[0],
                         STARPU_EXECUTE_ON_NODE, ranks - 1, 0);
  starpu_mpi_task_insert(MPI_COMM_WORLD, &adds, STARPU_VALUE, &more, sizeof more, STARPU_RW, handles[0],
                         STARPU_EXECUTE_ON_DATA, handles[1], 0);
  insert_take(0, 1);
  return 100 * first_of(0) + first_of(1);
}

static long built(void) {
  long more = 5;
  int one = 1;
  for (int repeat = 0; repeat < 3; ++repeat) {
    struct starpu_task* const task =
        starpu_mpi_task_build(MPI_COMM_WORLD, &adds, STARPU_VALUE, &more, sizeof more, STARPU_RW, handles[0],
                              STARPU_CALLBACK_WITH_ARG_NFREE, count_call, &one, STARPU_PRIORITY, -3, 0);
    if (task != NULL && starpu_task_submit(task) != 0) abort();
    starpu_mpi_task_post_build(MPI_COMM_WORLD, &adds, STARPU_VALUE, &more, sizeof more, STARPU_RW, handles[0],
                               STARPU_CALLBACK_WITH_ARG_NFREE, count_call, &one, STARPU_PRIORITY, -3, 0);
  }
  starpu_mpi_wait_for_all(MPI_COMM_WORLD);
  return 100 * first_of(0) + called;
}

/* The owner changes its data behind StarPU-MPI's back. */
static long flushed(void) {
  insert_take(0, 1);
  starpu_mpi_cache_flush(MPI_COMM_WORLD, handles[0]);
  if (rank == 0) {
    starpu_data_acquire(handles[0], STARPU_RW);
    for (int i = 0; i < kCount; ++i) memory[0][i] = 7;
    starpu_data_release(handles[0]);
  }
  insert_take(0, 1); /* 14 */
  starpu_mpi_cache_flush_all_data(MPI_COMM_WORLD);
  insert_take(0, 1); /* 42 */
  return first_of(1);
}

static long migrated(void) {
  insert_add(0, 3);
  starpu_mpi_data_migrate(MPI_COMM_WORLD, handles[0], ranks - 1);
  insert_add(0, 3);
  return 10 * first_of(0) + starpu_mpi_data_get_rank(handles[0]) - (ranks - 1);
}

/* Around all ranks, and back. */
static long ring(void) {
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  MPI_Status status;
  if (rank != 0) starpu_mpi_recv(handles[0], before, 5, MPI_COMM_WORLD, &status);
  long more = 1;
  starpu_task_insert(&adds, STARPU_VALUE, &more, sizeof more, STARPU_RW, handles[0], 0);
  starpu_mpi_send(handles[0], next, 5, MPI_COMM_WORLD);
  if (rank == 0) starpu_mpi_recv(handles[0], before, 5, MPI_COMM_WORLD, &status);
  starpu_mpi_cache_flush(MPI_COMM_WORLD, handles[0]);
  return first_of(0);
}

static long detached(void) {
  int one = 1, ten = 10;
  starpu_mpi_req req = NULL;
  MPI_Status status;
  if (rank == 0) {
    starpu_mpi_irecv_detached(handles[0], 1, 6, MPI_COMM_WORLD, count_call, &one);
    starpu_mpi_irecv(handles[0], &req, 1, 6, MPI_COMM_WORLD);
    starpu_mpi_wait(&req, &status);
    called += 100 * (status.MPI_SOURCE == 1);
  }
  if (rank == 1) {
    long more = 8;
    starpu_mpi_isend_detached(handles[1], 0, 6, MPI_COMM_WORLD, count_call, &ten);
    starpu_task_insert(&adds, STARPU_VALUE, &more, sizeof more, STARPU_RW, handles[1], 0);
    int over = 0;
    starpu_mpi_isend(handles[1], &req, 0, 6, MPI_COMM_WORLD);
    while (!over) starpu_mpi_test(&req, &over, &status);
  }
  starpu_mpi_wait_for_all(MPI_COMM_WORLD);
  return 1000 * memory[0][kCount - 1] + called;
}

/* Unregistered while messages are on their way. */
static long unregistered(void) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    insert_add(0, 1);
    for (int data = 1; data < kHandles; ++data) insert_take(0, data);
    unregister_all();
    register_all(kCount);
  }
  return memory[0][kCount - 1];
}

/* A part of a matrix, with gaps between its rows. */
static long matrix(void) {
  starpu_data_handle_t part;
  for (int i = 0; rank == 0 && i < kCount; ++i) memory[0][i] = i;
  starpu_matrix_data_register(&part, rank == 0 ? STARPU_MAIN_RAM : -1, rank == 0 ? (uintptr_t)(memory[0] + 5) : 0, 100,
                              30, 40, sizeof(long));
  starpu_mpi_data_register(part, 7, 0);
  starpu_mpi_get_data_on_all_nodes_detached(MPI_COMM_WORLD, part);
  starpu_data_acquire(part, STARPU_R);
  const long* const numbers = (const long*)starpu_matrix_get_local_ptr(part);
  long sum = 0, all = 0;
  for (unsigned i = 0; i < 40; ++i) {
    for (unsigned j = 0; j < 30; ++j) sum += numbers[i * starpu_matrix_get_local_ld(part) + j];
  }
  starpu_data_release(part);
  starpu_mpi_wait_for_all(MPI_COMM_WORLD);
  MPI_Reduce(&sum, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  starpu_data_unregister(part);
  return all / ranks;
}

static long order(void) {
  insert_add(0, 1);
  for (int i = 1; i < kHandles; ++i) insert_take(0, rank == 1 ? kHandles - i : i);
  starpu_mpi_wait_for_all(MPI_COMM_WORLD);
  return first_of(0);
}

static long missing(void) {
  insert_add(0, 1);
  if (rank != 0) insert_take(0, 1);
  starpu_mpi_wait_for_all(MPI_COMM_WORLD);
  return 0;
}

static long sizes(void) {
  unregister_all();
  register_all(rank == 1 ? kCount / 2 : kCount);
  insert_take(0, 1);
  starpu_mpi_wait_for_all(MPI_COMM_WORLD);
  return 0;
}

static long unnamed(void) {
  starpu_data_handle_t other;
  starpu_variable_data_register(&other, STARPU_MAIN_RAM, (uintptr_t)memory[0], sizeof memory[0][0]);
  starpu_mpi_task_insert(MPI_COMM_WORLD, &adds, STARPU_RW, other, 0);
  return 0;
}

static const struct {
  const char* name;
  long (*run)(void);
} cases[] = {{"tasks", tasks},       {"elsewhere", elsewhere}, {"built", built},       {"flushed", flushed},
             {"migrated", migrated}, {"ring", ring},           {"detached", detached}, {"unregistered", unregistered},
             {"matrix", matrix},     {"order", order},         {"missing", missing},   {"sizes", sizes},
             {"unnamed", unnamed}};

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "";
#ifdef ELBOWROOM_BROADCASTS
  if (strcmp(name, "version") == 0) {
    const int result = elbow_starpu_mpi_start(&argc, &argv, 1, MPI_COMM_WORLD, NULL, 1, 1, 9);
    return result == 0 ? 0 : 4;
  }
#endif
  if (starpu_mpi_init_conf(&argc, &argv, 1, MPI_COMM_WORLD, NULL) != 0) return 77;
  starpu_mpi_comm_rank(MPI_COMM_WORLD, &rank);
  starpu_mpi_comm_size(MPI_COMM_WORLD, &ranks);
  register_all(kCount);
  int found = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    if (strcmp(name, cases[i].name) != 0) continue;
    found = 1;
    const long result = cases[i].run();
    if (rank == 0) printf("%s %ld\n", name, result);
  }
  unregister_all();
  starpu_mpi_shutdown();
  return found ? 0 : 2;
}
