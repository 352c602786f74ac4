/* Cholesky's factorization of a tiled matrix, right-looking: A = L transpose(L), the lower triangle of tiles. */
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
    a[k * n + k] = sqrt(a[k * n + k]);
    for (int i = k + 1; i < n; ++i) a[i * n + k] /= a[k * n + k];
    for (int i = k + 1; i < n; ++i) {
      for (int j = k + 1; j <= i; ++j) a[i * n + j] -= a[i * n + k] * a[j * n + k];
    }
  }
  for (int i = 0; i < n; ++i) {
    for (int j = i + 1; j < n; ++j) a[i * n + j] = 0;
  }
}

/* x transpose(l) = b, in place of b. */
static void solve(void* buffers[], void* argument) {
  const double* const l = numbers(buffers[0]);
  double* const b = numbers(buffers[1]);
  const int n = block_of(argument);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      double value = b[i * n + j];
      for (int k = 0; k < j; ++k) value -= b[i * n + k] * l[j * n + k];
      b[i * n + j] = value / l[j * n + j];
    }
  }
}

static void update(void* buffers[], void* argument) {
  subtract_product(numbers(buffers[2]), numbers(buffers[0]), numbers(buffers[1]), block_of(argument), 1);
}

static void update_diagonal(void* buffers[], void* argument) {
  subtract_product(numbers(buffers[1]), numbers(buffers[0]), numbers(buffers[0]), block_of(argument), 1);
}

static struct starpu_codelet potrf = {.cpu_funcs = {factorize}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "potrf"};
static struct starpu_codelet trsm = {
    .cpu_funcs = {solve}, .nbuffers = 2, .modes = {STARPU_R, STARPU_RW}, .name = "trsm"};
static struct starpu_codelet gemm = {
    .cpu_funcs = {update}, .nbuffers = 3, .modes = {STARPU_R, STARPU_R, STARPU_RW}, .name = "gemm"};
static struct starpu_codelet syrk = {
    .cpu_funcs = {update_diagonal}, .nbuffers = 2, .modes = {STARPU_R, STARPU_RW}, .name = "syrk"};

static void submit(const example* self) {
  const int tiles = self->tiles;
  const int* const block = &self->block;
  for (int k = 0; k < tiles; ++k) {
    const int first = self->priorities ? 2 * (tiles - k) + 1 : 0, second = self->priorities ? 2 * (tiles - k) : 0;
    starpu_mpi_task_insert(MPI_COMM_WORLD, &potrf, STARPU_VALUE, block, sizeof *block, STARPU_RW, tile(self, k, k),
                           STARPU_PRIORITY, first, 0);
    for (int i = k + 1; i < tiles; ++i) {
      starpu_mpi_task_insert(MPI_COMM_WORLD, &trsm, STARPU_VALUE, block, sizeof *block, STARPU_R, tile(self, k, k),
                             STARPU_RW, tile(self, i, k), STARPU_PRIORITY, i == k + 1 ? first : second, 0);
    }
    for (int i = k + 1; i < tiles; ++i) {
      const int next = self->priorities && i == k + 1 ? first : 0;
      starpu_mpi_task_insert(MPI_COMM_WORLD, &syrk, STARPU_VALUE, block, sizeof *block, STARPU_R, tile(self, i, k),
                             STARPU_RW, tile(self, i, i), STARPU_PRIORITY, next, 0);
      for (int j = k + 1; j < i; ++j) {
        starpu_mpi_task_insert(MPI_COMM_WORLD, &gemm, STARPU_VALUE, block, sizeof *block, STARPU_R, tile(self, i, k),
                               STARPU_R, tile(self, j, k), STARPU_RW, tile(self, i, j), 0);
      }
    }
  }
}

static double value(int row, int column, int size) {
  return row == column ? size + 1.0 : 1.0 / (1 + abs(row - column));
}

/* |A x - L transpose(L) x| / |A x| for a vector x of ones. */
static double residual_of(const double* l, int size) {
  double error = 0, norm = 0;
  double* const y = calloc((size_t)size, sizeof *y);
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j <= i; ++j) y[j] += l[(size_t)i * (size_t)size + (size_t)j];
  }
  for (int i = 0; i < size; ++i) {
    double product = 0, expected = 0;
    for (int j = 0; j <= i; ++j) product += l[(size_t)i * (size_t)size + (size_t)j] * y[j];
    for (int j = 0; j < size; ++j) expected += value(i, j, size);
    error = fmax(error, fabs(product - expected));
    norm = fmax(norm, fabs(expected));
  }
  free(y);
  return error / norm;
}

int main(int argc, char** argv) { return run_example(argc, argv, value, submit, residual_of); }
