/* A relaxation by five points on a grid of tiles: in each of STEPS steps, every tile is averaged with the edges of its
 * neighbours, in place, tile by tile. A tile is read by the ranks of up to four neighbours. */
#include "example.h"

enum { kSteps = 10 };

static double* numbers(void* buffer) { return (double*)STARPU_VECTOR_GET_PTR(buffer); }

static void relax(void* buffers[], void* argument) {
  int block = 0;
  starpu_codelet_unpack_args(argument, &block);
  const int n = block, last = n - 1;
  double* const own = numbers(buffers[0]);
  const double *const up = numbers(buffers[1]), *const down = numbers(buffers[2]), *const left = numbers(buffers[3]),
                      *const right = numbers(buffers[4]);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      const double above = i == 0 ? up[last * n + j] : own[(i - 1) * n + j];
      const double below = i == last ? down[j] : own[(i + 1) * n + j];
      const double before = j == 0 ? left[i * n + last] : own[i * n + j - 1];
      const double behind = j == last ? right[i * n] : own[i * n + j + 1];
      own[i * n + j] = 0.2 * (own[i * n + j] + above + below + before + behind);
    }
  }
}

static struct starpu_codelet relaxation = {
    .cpu_funcs = {relax}, .nbuffers = 5, .modes = {STARPU_RW, STARPU_R, STARPU_R, STARPU_R, STARPU_R}, .name = "relax"};

/* The grid's edges meet: it is a torus. */
static void submit(const example* self) {
  const int tiles = self->tiles;
  for (int step = 0; step < kSteps; ++step) {
    for (int i = 0; i < tiles; ++i) {
      for (int j = 0; j < tiles; ++j) {
        starpu_mpi_task_insert(MPI_COMM_WORLD, &relaxation, STARPU_VALUE, &self->block, sizeof self->block, STARPU_RW,
                               tile(self, i, j), STARPU_R, tile(self, (i + tiles - 1) % tiles, j), STARPU_R,
                               tile(self, (i + 1) % tiles, j), STARPU_R, tile(self, i, (j + tiles - 1) % tiles),
                               STARPU_R, tile(self, i, (j + 1) % tiles), STARPU_PRIORITY,
                               self->priorities ? kSteps - step : 0, 0);
      }
    }
  }
}

static double value(int row, int column, int size) { return sin(6.0 * row / size) + (column % 7); }

/* How far the numbers are from their neighbours, which each step reduces: not the residual of a solution. */
static double roughness_of(const double* grid, int size) {
  double most = 0;
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j + 1 < size; ++j) {
      const double* const at = grid + (size_t)i * (size_t)size + (size_t)j;
      most = fmax(most, fabs(at[0] - at[1]));
    }
  }
  return most;
}

int main(int argc, char** argv) { return run_example(argc, argv, value, submit, roughness_of); }
