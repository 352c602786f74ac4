/* In each repeat, a task writes each tile of a matrix on the tile's owner, and a task on each other rank reads it. The time is
 * that from the first task's submission until all ranks have read all. */
#include "example.h"

static void produce(void* buffers[], void* argument) {
  double* const numbers = (double*)STARPU_VECTOR_GET_PTR(buffers[0]);
  const unsigned count = STARPU_VECTOR_GET_NX(buffers[0]);
  int repeat = 0;
  starpu_codelet_unpack_args(argument, &repeat);
  for (unsigned i = 0; i < count; ++i) numbers[i] = repeat + i;
}

static void consume(void* buffers[], void* argument) {
  const double* const numbers = (const double*)STARPU_VECTOR_GET_PTR(buffers[0]);
  const unsigned count = STARPU_VECTOR_GET_NX(buffers[0]);
  int repeat = 0;
  starpu_codelet_unpack_args(argument, &repeat);
  for (unsigned i = 0; i < count; ++i) {
    if (numbers[i] != repeat + i) MPI_Abort(MPI_COMM_WORLD, 3);
  }
}

static struct starpu_codelet writer = {.cpu_funcs = {produce}, .nbuffers = 1, .modes = {STARPU_W}, .name = "produce"};
static struct starpu_codelet reader = {.cpu_funcs = {consume}, .nbuffers = 1, .modes = {STARPU_R}, .name = "consume"};

static void submit(const example* self, int repeat) {
  for (int at = 0; at < self->tiles * self->tiles; ++at) {
    starpu_mpi_task_insert(MPI_COMM_WORLD, &writer, STARPU_VALUE, &repeat, sizeof repeat, STARPU_W, self->handles[at],
                           0);
    for (int rank = 0; rank < self->ranks; ++rank) {
      if (rank == owner_of(self, at / self->tiles, at % self->tiles)) continue;
      starpu_mpi_task_insert(MPI_COMM_WORLD, &reader, STARPU_VALUE, &repeat, sizeof repeat, STARPU_R, self->handles[at],
                             STARPU_EXECUTE_ON_NODE, rank, STARPU_PRIORITY, self->priorities ? rank : 0, 0);
    }
  }
}

int main(int argc, char** argv) {
  example self = start(argc, argv);
  for (int repeat = 0; repeat < self.repeats; ++repeat) {
    starpu_mpi_barrier(MPI_COMM_WORLD);
    const double begin = starpu_timing_now();
    submit(&self, repeat);
    starpu_mpi_wait_for_all(MPI_COMM_WORLD);
    print_time(&self, begin);
  }
  finish(&self);
  return 0;
}
