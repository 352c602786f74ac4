#include "common/blas.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#if __has_include(<cblas.h>)
#include <cblas.h>
#else
#include <mkl_cblas.h>
#endif

namespace elbowroom::program {
namespace {

// A function of the library that this program is linked to, by its name; nullptr where it has none. Libraries of linear
// algebra have the same routines, and each its own names for all else.
template <typename Function>
Function* function_of(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

std::string text_of(const char* name) {
  auto* text = function_of<const char*()>(name);
  const char* found = text == nullptr ? nullptr : text();
  return found == nullptr ? "" : found;
}

}  // namespace

void one_thread_each() {
  // BLIS counts in its own integers, 64 bits wide by default; the low half of a register is 1 either way.
  if (auto* set = function_of<void(long)>("bli_thread_set_num_threads")) {
    set(1);
  }
  for (const char* name : {"openblas_set_num_threads", "flexiblas_set_num_threads", "MKL_Set_Num_Threads"}) {
    if (auto* set = function_of<void(int)>(name)) {
      set(1);
    }
  }
}

std::string blas() {
  if (const std::string config = text_of("openblas_get_config"); !config.empty()) {
    return config + " " + text_of("openblas_get_corename");
  }
  if (auto* version = function_of<void(char*, int)>("MKL_Get_Version_String")) {
    char text[200] = {};
    version(text, sizeof text - 1);
    return text;
  }
  if (const std::string version = text_of("bli_info_get_version_str"); !version.empty()) {
    return "BLIS " + version;
  }
  if (auto* version = function_of<void(int*, int*, int*)>("flexiblas_get_version")) {
    int numbers[3] = {};
    version(&numbers[0], &numbers[1], &numbers[2]);
    std::string text = "FlexiBLAS";
    for (const int number : numbers) {
      text += text.back() == 'S' ? " " : ".";
      text += std::to_string(number);
    }
    char backend[200] = {};
    auto* current = function_of<int(char*, std::size_t)>("flexiblas_current_backend");
    return current != nullptr && current(backend, sizeof backend - 1) > 0 ? text + " over " + backend : text;
  }
  return "unknown";
}

void choose_blas_kernels(char** argv) {
#if defined(__x86_64__)
  if (text_of("openblas_get_corename").find("Prescott") == std::string::npos ||
      std::getenv("OPENBLAS_CORETYPE") != nullptr) {
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
  const auto n = static_cast<int>(block);
  cblas_dgemv(CblasRowMajor, CblasNoTrans, n, n, 1, a, n, p, 1, first ? 0 : 1, q, 1);
}

void multiply_blocks(std::size_t block, const double* a, const double* b, double* c, bool first) {
  const auto n = static_cast<int>(block);
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, first ? 0 : 1, c, n);
}

}  // namespace elbowroom::program
