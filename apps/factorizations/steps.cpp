#include "factorizations/steps.hpp"

#if __has_include(<cblas.h>)
#include <cblas.h>
#else
#include <mkl_cblas.h>
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "common/uniform.hpp"

// LAPACK's own interface: libraries of linear algebra have its code, not all its C header. Integers have 32 bits.
extern "C" {
void dpotrf_(const char* half, const int* n, double* a, const int* lda, int* info, std::size_t);
void dgeqrt_(const int* m, const int* n, const int* nb, double* a, const int* lda, double* t, const int* ldt,
             double* work, int* info);
void dgemqrt_(const char* side, const char* trans, const int* m, const int* n, const int* k, const int* nb,
              const double* v, const int* ldv, const double* t, const int* ldt, double* c, const int* ldc, double* work,
              int* info, std::size_t, std::size_t);
void dtpqrt_(const int* m, const int* n, const int* l, const int* nb, double* a, const int* lda, double* b,
             const int* ldb, double* t, const int* ldt, double* work, int* info);
void dtpmqrt_(const char* side, const char* trans, const int* m, const int* n, const int* k, const int* l,
              const int* nb, const double* v, const int* ldv, const double* t, const int* ldt, double* a,
              const int* lda, double* b, const int* ldb, double* work, int* info, std::size_t, std::size_t);
}

namespace elbowroom::factorizations {

using taskflow::Step;

bool compute(Step step, std::size_t block, std::size_t inner_block, void* const* tiles) {
  const auto n = static_cast<int>(block);
  const auto nb = static_cast<int>(inner_block);
  constexpr int kNone = 0;
  std::array<double*, 4> tile{};
  const std::size_t count = step == Step::kPotrf                                                 ? 1
                            : step == Step::kTrsm || step == Step::kSyrk || step == Step::kGeqrt ? 2
                            : step == Step::kTpmqrt                                              ? 4
                                                                                                 : 3;
  for (std::size_t i = 0; i < count; ++i) tile[i] = static_cast<double*>(tiles[i]);
  thread_local std::vector<double> work;
  work.resize(block * inner_block);
  int info = 0;
  switch (step) {
    case Step::kPotrf: dpotrf_("L", &n, tile[0], &n, &info, 1); break;
    case Step::kTrsm:
      cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, n, n, 1, tile[0], n, tile[1], n);
      break;
    case Step::kSyrk: cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, n, n, -1, tile[0], n, 1, tile[1], n); break;
    case Step::kGemm:
      cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, n, n, n, -1, tile[0], n, tile[1], n, 1, tile[2], n);
      break;
    case Step::kGeqrt: dgeqrt_(&n, &n, &nb, tile[0], &n, tile[1], &nb, work.data(), &info); break;
    case Step::kOrmqr:
      dgemqrt_("L", "T", &n, &n, &n, &nb, tile[0], &n, tile[1], &nb, tile[2], &n, work.data(), &info, 1, 1);
      break;
    case Step::kTpqrt: dtpqrt_(&n, &n, &kNone, &nb, tile[0], &n, tile[1], &n, tile[2], &nb, work.data(), &info); break;
    case Step::kTpmqrt:
      dtpmqrt_("L", "T", &n, &n, &n, &kNone, &nb, tile[0], &n, tile[1], &nb, tile[2], &n, tile[3], &n, work.data(),
               &info, 1, 1);
      break;
  }
  return info == 0;
}

double flops(Step step, std::size_t block) {
  constexpr std::array<double, taskflow::kSteps> kCubes = {1.0 / 3, 1, 1, 2, 4.0 / 3, 2, 2, 4};
  const auto n = static_cast<double>(block);
  return kCubes[static_cast<std::size_t>(step)] * n * n * n;
}

std::array<double, taskflow::kSteps> time_steps(std::size_t block, std::size_t inner_block, int repetitions) {
  const std::size_t size = block * block;
  // Four tiles and a T, new for each repetition: dominant on the diagonal, so that all factors exist.
  std::vector<double> fresh(size);
  for (std::size_t at = 0; at < size; ++at) {
    fresh[at] = at % (block + 1) == 0 ? static_cast<double>(block) : program::uniform(1, at, 0);
  }
  std::array<double, taskflow::kSteps> result{};
  for (std::size_t step = 0; step < result.size(); ++step) {
    std::vector<double> seconds;
    for (int i = 0; i <= repetitions; ++i) {
      std::array<std::vector<double>, 4> memory{fresh, fresh, fresh, fresh};
      std::array<void*, 4> tiles{};
      for (std::size_t j = 0; j < tiles.size(); ++j) tiles[j] = memory[j].data();
      const std::int64_t start = now_ns();
      compute(static_cast<Step>(step), block, inner_block, tiles.data());
      // The first one warms up.
      if (i > 0) seconds.push_back(static_cast<double>(now_ns() - start) * 1e-9);
    }
    result[step] = *std::min_element(seconds.begin(), seconds.end());
  }
  return result;
}

}  // namespace elbowroom::factorizations
