#include "common/blas.hpp"

#include <cblas.h>
#include <unistd.h>

#include <cstdlib>

namespace elbowroom::program {

void one_thread_each() { openblas_set_num_threads(1); }

std::string blas() { return openblas_get_config() + std::string(" ") + openblas_get_corename(); }

void choose_blas_kernels(char** argv) {
#if defined(__x86_64__)
  if (blas().find("Prescott") == std::string::npos || std::getenv("OPENBLAS_CORETYPE") != nullptr) {
    return;
  }
  const char* name = __builtin_cpu_supports("avx512vl") ? "SkylakeX" : __builtin_cpu_supports("avx2") ? "Haswell" : "";
  if (*name != 0) {
    setenv("OPENBLAS_CORETYPE", name, 1);
    execv("/proc/self/exe", argv);  // returns where it cannot: then the old kernels must do
  }
#else
  (void)argv;
#endif
}

void multiply(std::size_t block, const double* a, const double* p, double* q, bool first) {
  const auto n = static_cast<blasint>(block);
  cblas_dgemv(CblasRowMajor, CblasNoTrans, n, n, 1, a, n, p, 1, first ? 0 : 1, q, 1);
}

void multiply_blocks(std::size_t block, const double* a, const double* b, double* c, bool first) {
  const auto n = static_cast<blasint>(block);
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, first ? 0 : 1, c, n);
}

}  // namespace elbowroom::program
