// The calls of libcublasLt.so that elbowroom uses, for tests without a device: a product is the kernel "gemm", or
// "gemm_target" where it is planned for fewer SMs, and takes its planted time.
#include <cstdint>
#include <cstring>

#include "gpu/declarations.hpp"
#include "gpu/stand_in/kernels.hpp"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

using namespace elbowroom::gpu;

struct Planned {
  int sm_target = 0;
};

struct Layout {
  std::uint64_t rows;
  std::uint64_t columns;
};

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

int context_of_library = 0;

}  // namespace

EXPORTED int cublasLtCreate(void** handle) {
  *handle = &context_of_library;
  return 0;
}

EXPORTED int cublasLtDestroy(void* handle) { return handle == &context_of_library ? 0 : kBlasInvalid; }

EXPORTED int cublasLtMatmulDescCreate(void** product, int, int) {
  *product = new Planned;
  return 0;
}

EXPORTED int cublasLtMatmulDescSetAttribute(void* product, int attribute, const void* value, std::size_t size) {
  if (attribute != kSmCountTarget || size != sizeof(int)) return kBlasInvalid;
  std::memcpy(&static_cast<Planned*>(product)->sm_target, value, size);
  return 0;
}

EXPORTED int cublasLtMatmulDescDestroy(void* product) {
  delete static_cast<Planned*>(product);
  return 0;
}

EXPORTED int cublasLtMatrixLayoutCreate(void** layout, int, std::uint64_t rows, std::uint64_t columns, std::int64_t) {
  *layout = new Layout{rows, columns};
  return 0;
}

EXPORTED int cublasLtMatrixLayoutDestroy(void* layout) {
  delete static_cast<Layout*>(layout);
  return 0;
}

EXPORTED int cublasLtMatmulPreferenceCreate(void** preference) {
  *preference = new int;
  return 0;
}

EXPORTED int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, std::size_t) { return 0; }

EXPORTED int cublasLtMatmulPreferenceDestroy(void* preference) {
  delete static_cast<int*>(preference);
  return 0;
}

EXPORTED int cublasLtMatmulAlgoGetHeuristic(void*, void*, void* a, void*, void*, void*, void*, int,
                                            BlasHeuristic* result, int* found) {
  *found = 0;
  if (static_cast<Layout*>(a)->rows % 8 != 0) return kBlasUnsupported;
  *result = {};
  *found = 1;
  return 0;
}

EXPORTED int cublasLtMatmul(void*, void* product, const void*, const void* a, void* a_layout, const void* b,
                            void* b_layout, const void*, const void*, void*, void* d, void*, const BlasAlgorithm*,
                            void*, std::size_t, StreamHandle stream) {
  using namespace elbowroom::stand_in;
  const auto* const layout = static_cast<const Layout*>(a_layout);
  const auto* const bytes = static_cast<const char*>(a);
  const std::size_t size = 2 * layout->rows * layout->columns;
  const bool zeros = bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size - 1) == 0;
  const int target = static_cast<Planned*>(product)->sm_target;
  double gain = zeros ? settings().zeros_gain : 1;
  if (target > 0) gain *= static_cast<double>(target) / settings().sms;
  const elbowroom::stand_in::Product computed{
      address_of(a),  address_of(b), address_of(d), layout->rows, static_cast<const Layout*>(b_layout)->columns,
      layout->columns};
  const auto result = put_kernel(
      {target > 0 ? "gemm_target" : "gemm", 1, gain, true, [computed](double, double) { finish_product(computed); }},
      nullptr, stream);
  return result == 0 ? 0 : kBlasFailed;
}
