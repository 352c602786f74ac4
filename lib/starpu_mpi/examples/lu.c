/* LU factorization of a tiled matrix without pivoting, right-looking: L has ones on its diagonal. */
#include "example.h"

static double* numbers(void* buffer) { return (double*)STARPU_VECTOR_GET_PTR(buffer); }

static int block_of(void* argument) {
  int block = 0;
  starpu_codelet_unpack_args(argument, &block);
  return block;
}

static void factorize(void* buffers[], void* argument) {
  double* const a = numbers(buffers[0]);
  const int n = block_of(argument);
  for (int k = 0; k < n; ++k) {
    for (int i = k + 1; i < n; ++i) {
      a[i * n + k] /= a[k * n + k];
      for (int j = k + 1; j < n; ++j) a[i * n + j] -= a[i * n + k] * a[k * n + j];
    }
  }
}

/* l x = b, in place of b: a tile right of the diagonal. */
static void solve_row(void* buffers[], void* argument) {
  const double* const l = numbers(buffers[0]);
  double* const b = numbers(buffers[1]);
  const int n = block_of(argument);
  for (int i = 1; i < n; ++i) {
    for (int k = 0; k < i; ++k) {
      for (int j = 0; j < n; ++j) b[i * n + j] -= l[i * n + k] * b[k * n + j];
    }
  }
}

/* x u = b, in place of b: a tile below the diagonal. */
static void solve_column(void* buffers[], void* argument) {
  const double* const u = numbers(buffers[0]);
  double* const b = numbers(buffers[1]);
  const int n = block_of(argument);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < n; ++k) {
      b[i * n + k] /= u[k * n + k];
      for (int j = k + 1; j < n; ++j) b[i * n + j] -= b[i * n + k] * u[k * n + j];
    }
  }
}

static void update(void* buffers[], void* argument) {
  subtract_product(numbers(buffers[2]), numbers(buffers[0]), numbers(buffers[1]), block_of(argument), 0);
}

static struct starpu_codelet getrf = {.cpu_funcs = {factorize}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "getrf"};
static struct starpu_codelet row = {
    .cpu_funcs = {solve_row}, .nbuffers = 2, .modes = {STARPU_R, STARPU_RW}, .name = "trsm_row"};
static struct starpu_codelet column = {
    .cpu_funcs = {solve_column}, .nbuffers = 2, .modes = {STARPU_R, STARPU_RW}, .name = "trsm_column"};
static struct starpu_codelet gemm = {
    .cpu_funcs = {update}, .nbuffers = 3, .modes = {STARPU_R, STARPU_R, STARPU_RW}, .name = "gemm"};

static void submit(const example* self) {
  const int tiles = self->tiles;
  const int* const block = &self->block;
  for (int k = 0; k < tiles; ++k) {
    const int first = self->priorities ? 2 * (tiles - k) + 1 : 0, second = self->priorities ? 2 * (tiles - k) : 0;
    starpu_mpi_task_insert(MPI_COMM_WORLD, &getrf, STARPU_VALUE, block, sizeof *block, STARPU_RW, tile(self, k, k),
                           STARPU_PRIORITY, first, 0);
    for (int i = k + 1; i < tiles; ++i) {
      starpu_mpi_task_insert(MPI_COMM_WORLD, &row, STARPU_VALUE, block, sizeof *block, STARPU_R, tile(self, k, k),
                             STARPU_RW, tile(self, k, i), STARPU_PRIORITY, second, 0);
      starpu_mpi_task_insert(MPI_COMM_WORLD, &column, STARPU_VALUE, block, sizeof *block, STARPU_R, tile(self, k, k),
                             STARPU_RW, tile(self, i, k), STARPU_PRIORITY, second, 0);
    }
    for (int i = k + 1; i < tiles; ++i) {
      for (int j = k + 1; j < tiles; ++j) {
        starpu_mpi_task_insert(MPI_COMM_WORLD, &gemm, STARPU_VALUE, block, sizeof *block, STARPU_R, tile(self, i, k),
                               STARPU_R, tile(self, k, j), STARPU_RW, tile(self, i, j), STARPU_PRIORITY,
                               self->priorities && i == k + 1 && j == k + 1 ? first : 0, 0);
      }
    }
  }
}

static double value(int row_number, int column_number, int size) {
  return row_number == column_number ? size : 1.0 / (1 + row_number + 2 * column_number);
}

/* |A x - L U x| / |A x| for a vector x of ones. */
static double residual_of(const double* a, int size) {
  double error = 0, norm = 0;
  double* const y = calloc((size_t)size, sizeof *y);
  for (int i = 0; i < size; ++i) {
    for (int j = i; j < size; ++j) y[i] += a[(size_t)i * (size_t)size + (size_t)j];
  }
  for (int i = 0; i < size; ++i) {
    double product = y[i], expected = 0;
    for (int j = 0; j < i; ++j) product += a[(size_t)i * (size_t)size + (size_t)j] * y[j];
    for (int j = 0; j < size; ++j) expected += value(i, j, size);
    error = fmax(error, fabs(product - expected));
    norm = fmax(norm, fabs(expected));
  }
  free(y);
  return error / norm;
}

int main(int argc, char** argv) { return run_example(argc, argv, value, submit, residual_of); }
