// Tests of what needs MPI, run as one rank or several.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <mpi.h>

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  const int failed = doctest::Context(argc, argv).run();
  MPI_Finalize();
  return failed;
}
