/* A halo of columns, sent as a strided type: the library packs and unpacks each value. Repaired: the same values as
 * rows, which are contiguous. */
#include "zoo.h"

enum { kColumns = 64 };
static double *out, *in;
static int rows;
static MPI_Datatype column;

static void exchange(const struct Zoo* zoo, double count) {
  ZOO_MPI(Sendrecv)
  (out, (int)count, column, zoo->right, 0, in, (int)count, column, zoo->left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange_rows(const struct Zoo* zoo, double count) {
  zoo_ring(zoo, (char*)out, (char*)in, (double)(int)count * rows * sizeof(double));
}

int main(int argc, char** argv) {
  struct Zoo zoo = zoo_begin(&argc, &argv);
  rows = zoo.bytes > 0 ? (int)(zoo.bytes / sizeof(double)) : 16384;
  out = (double*)zoo_memory((double)rows * kColumns * sizeof(double));
  in = (double*)zoo_memory((double)rows * kColumns * sizeof(double));
  MPI_Datatype one;
  MPI_Type_vector(rows, 1, kColumns, MPI_DOUBLE, &one);
  MPI_Type_create_resized(one, 0, sizeof(double), &column);
  MPI_Type_commit(&column);
  const double taken = zoo.size * zoo.step;
  double count = 4 * zoo_repetitions(&zoo, exchange, 4, taken);
  if (count > kColumns) count = kColumns;
  if (count < 1) count = 1;
  const double saved = zoo_duration(&zoo, exchange, count) - zoo_duration(&zoo, exchange_rows, count);
  if (!zoo.repaired && saved > 0) zoo.expected = zoo.steps * saved;
  zoo_first_step(&zoo);
  for (int step = 0; step < zoo.steps; ++step) {
    zoo_work(&zoo, zoo.step - taken);
    if (zoo.repaired) {
      exchange_rows(&zoo, count);
    } else {
      exchange(&zoo, count);
    }
  }
  MPI_Type_free(&column);
  MPI_Type_free(&one);
  free(out);
  free(in);
  return zoo_end(&zoo);
}
