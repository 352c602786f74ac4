/* What the examples have in common: one of the two headers, options, and matrices of tiles on a grid of ranks. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#ifdef ELBOWROOM_BROADCASTS
#include "elbowroom/starpu_mpi.h"
#else
#include <starpu_mpi.h>
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PROGRAM TILES BLOCK REPEATS PRIORITIES: a matrix of TILES x TILES tiles of BLOCK x BLOCK numbers, REPEATS times, with
 * priorities (1) or without (0). */
typedef struct example {
  int tiles, block, repeats, priorities;
  int rank, ranks, rows; /* `rows`: of the grid of ranks */
  starpu_data_handle_t* handles;
} example;

static inline int owner_of(const example* self, int i, int j) {
  const int columns = self->ranks / self->rows;
  return (i % self->rows) * columns + j % columns;
}

static inline starpu_data_handle_t tile(const example* self, int i, int j) {
  return self->handles[i * self->tiles + j];
}

/* Every rank registers all tiles; their owner has memory for them. */
static inline example start(int argc, char** argv) {
  example self = {8, 64, 1, 1, 0, 1, 1, NULL};
  int* const options[] = {&self.tiles, &self.block, &self.repeats, &self.priorities};
  for (int i = 1; i < argc && i < 5; ++i) *options[i - 1] = atoi(argv[i]);
  if (starpu_mpi_init_conf(&argc, &argv, 1, MPI_COMM_WORLD, NULL) != 0) exit(77);
  starpu_mpi_comm_rank(MPI_COMM_WORLD, &self.rank);
  starpu_mpi_comm_size(MPI_COMM_WORLD, &self.ranks);
  for (int rows = 1; rows * rows <= self.ranks; ++rows) {
    if (self.ranks % rows == 0) self.rows = rows;
  }
  const int count = self.tiles * self.tiles;
  const unsigned elements = (unsigned)(self.block * self.block);
  self.handles = malloc((size_t)count * sizeof *self.handles);
  for (int at = 0; at < count; ++at) {
    const int owner = owner_of(&self, at / self.tiles, at % self.tiles);
    const int home = owner == self.rank ? STARPU_MAIN_RAM : -1;
    double* memory = home < 0 ? NULL : malloc(elements * sizeof(double));
    starpu_vector_data_register(&self.handles[at], home, (uintptr_t)memory, elements, sizeof(double));
    starpu_mpi_data_register(self.handles[at], at, owner);
  }
  return self;
}

/* Gives the tiles of this rank the values of a function of row and column. */
static inline void fill(const example* self, double (*value)(int row, int column, int size)) {
  const int block = self->block, size = self->tiles * block;
  starpu_mpi_cache_flush_all_data(MPI_COMM_WORLD);
  for (int at = 0; at < self->tiles * self->tiles; ++at) {
    const int i = at / self->tiles, j = at % self->tiles;
    if (owner_of(self, i, j) != self->rank) continue;
    starpu_data_acquire(self->handles[at], STARPU_W);
    double* const numbers = (double*)starpu_vector_get_local_ptr(self->handles[at]);
    for (int k = 0; k < block * block; ++k) {
      numbers[k] = value(i * block + k / block, j * block + k % block, size);
    }
    starpu_data_release(self->handles[at]);
  }
  starpu_mpi_barrier(MPI_COMM_WORLD);
}

/* A matrix of all tiles on rank 0; NULL elsewhere. Rank 0 waits for the tiles themselves: in StarPU-MPI 1.3.10, a barrier does not
 * wait for receives that no task needs, and keeps its thread from making progress with them. */
static inline double* gather(const example* self) {
  const int block = self->block, size = self->tiles * block;
  double* const whole = self->rank == 0 ? malloc(sizeof(double) * (size_t)size * (size_t)size) : NULL;
  for (int at = 0; at < self->tiles * self->tiles; ++at) {
    starpu_mpi_get_data_on_node_detached(MPI_COMM_WORLD, self->handles[at], 0, NULL, NULL);
  }
  for (int at = 0; whole != NULL && at < self->tiles * self->tiles; ++at) {
    starpu_data_acquire(self->handles[at], STARPU_R);
    const double* const numbers = (double*)starpu_vector_get_local_ptr(self->handles[at]);
    for (int k = 0; k < block; ++k) {
      const int row = at / self->tiles * block + k, column = at % self->tiles * block;
      memcpy(whole + (size_t)row * (size_t)size + column, numbers + k * block, (size_t)block * sizeof *whole);
    }
    starpu_data_release(self->handles[at]);
  }
  starpu_mpi_wait_for_all(MPI_COMM_WORLD);
  return whole;
}

static inline void print_time(const example* self, double begin) {
  if (self->rank == 0) printf("seconds %.6f\n", 1e-6 * (starpu_timing_now() - begin));
}

/* The residual, and a number that is the same only where all bits of the result are. */
static inline void print_result(const example* self, double residual, const double* whole) {
  const size_t size = (size_t)self->tiles * (size_t)self->block;
  uint64_t hash = 0;
  for (size_t i = 0; i < size * size; ++i) {
    uint64_t bits = 0;
    memcpy(&bits, whole + i, sizeof bits);
    hash = (hash ^ bits) * 0x100000001B3U;
  }
  printf("residual %.3g\nresult %016llx\n", residual, (unsigned long long)hash);
}

static inline void finish(example* self) {
  for (int at = 0; at < self->tiles * self->tiles; ++at) {
    const int own = owner_of(self, at / self->tiles, at % self->tiles) == self->rank;
    double* const memory = own ? (double*)starpu_vector_get_local_ptr(self->handles[at]) : NULL;
    starpu_data_unregister(self->handles[at]);
    free(memory);
  }
  free(self->handles);
#ifdef ELBOWROOM_BROADCASTS
  elbow_taskflow_counters counters = {.size = sizeof counters};
  elbow_starpu_mpi_count(&counters);
  unsigned long long sums[4] = {counters.messages, counters.broadcasts, counters.complete, counters.most};
  MPI_Reduce(self->rank == 0 ? MPI_IN_PLACE : sums, sums, 3, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (self->rank == 0) printf("messages %llu broadcasts %llu complete %llu\n", sums[0], sums[1], sums[2]);
#endif
  starpu_mpi_shutdown();
}

/* c -= a b, or c -= a transpose(b). */
static inline void subtract_product(double* c, const double* a, const double* b, int block, int transposed) {
  for (int i = 0; i < block; ++i) {
    if (transposed) {
      for (int j = 0; j < block; ++j) {
        double sum = 0;
        for (int k = 0; k < block; ++k) sum += a[i * block + k] * b[j * block + k];
        c[i * block + j] -= sum;
      }
      continue;
    }
    for (int k = 0; k < block; ++k) {
      for (int j = 0; j < block; ++j) c[i * block + j] -= a[i * block + k] * b[k * block + j];
    }
  }
}

/* The graph of tasks, as often as asked for, on a matrix that `value` gives; then what rank 0 has is checked. */
static inline int run_example(int argc, char** argv, double (*value)(int row, int column, int size),
                              void (*submit)(const example* self),
                              double (*residual_of)(const double* whole, int size)) {
  example self = start(argc, argv);
  for (int repeat = 0; repeat < self.repeats; ++repeat) {
    fill(&self, value);
    const double begin = starpu_timing_now();
    submit(&self);
    starpu_mpi_wait_for_all(MPI_COMM_WORLD);
    print_time(&self, begin);
  }
  double* const whole = gather(&self);
  if (whole != NULL) print_result(&self, residual_of(whole, self.tiles * self.block), whole);
  free(whole);
  finish(&self);
  return 0;
}

#endif
