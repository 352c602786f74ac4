#include <algorithm>
#include <cmath>

#include "buffers.hpp"
#include "load_kinds.hpp"

namespace elbowroom::gpu_bench {
namespace {

constexpr int kThreads = 512;
constexpr int kBlocksPerSm = 4;
constexpr float kScale = 3;
constexpr std::size_t kChecked = 1024;  // floats

// Of products: elements that are compared with the host's.
constexpr std::uint64_t kChecks = 32;
constexpr std::uint64_t kSeedA = 1;
constexpr std::uint64_t kSeedB = 2;
constexpr std::uint16_t kNoNumber = 0xffff;  // of BF16: not a number
constexpr double kBrainStep = 0x1p-8;        // of a BF16, relative
constexpr double kSumStep = 0x1p-16;         // of a sum in FP32, to its terms' sizes

// c = a + s b on three arrays of a third of `bytes` each.
class Triad final : public UnitLoad {
 public:
  Triad(const Kernels& kernels, std::size_t bytes)
      : UnitLoad(kernels.context(), {.work = 1e-6 * 3.0 * static_cast<double>(16 * vectors_in(bytes))}),
        kernels_(kernels),
        vectors_(vectors_in(bytes)),
        a_(context_, 16 * vectors_),
        b_(context_, 16 * vectors_),
        c_(context_, 16 * vectors_) {
    fill_device(context_, a_.address(), a_.size(), Content::reals, 1);
    fill_device(context_, b_.address(), b_.size(), Content::reals, 2);
  }

  const char* unit() const override { return "MB/s"; }

  void clear() override { clear_device(context_, c_.address(), c_.size()); }

  std::string check() override {
    const std::size_t count = std::min(kChecked, 4 * vectors_);
    std::vector<float> a(count), b(count), c(count);
    read_device(context_, a.data(), a_.address(), count * sizeof(float));
    read_device(context_, b.data(), b_.address(), count * sizeof(float));
    read_device(context_, c.data(), c_.address(), count * sizeof(float));
    for (std::size_t i = 0; i < count; ++i) {
      if (!(std::fabs(c[i] - (a[i] + kScale * b[i])) < 1e-5F)) return "triad computed a wrong value";
    }
    return check_not_zeros(context_, a_.address(), a_.size());
  }

 private:
  const Kernels& kernels_;
  std::size_t vectors_;  // of 16 bytes, in an array
  gpu::DeviceMemory a_;
  gpu::DeviceMemory b_;
  gpu::DeviceMemory c_;

  static std::size_t vectors_in(std::size_t bytes) { return std::max<std::size_t>(bytes / 48, 1); }

 public:
  void submit(const gpu::Stream& stream) override {
    gpu::DevicePointer c = c_.address(), a = a_.address(), b = b_.address();
    unsigned long long n = vectors_;
    float scale = kScale;
    kernels_.launch({"elbow_triad", kBlocksPerSm * context_.facts().sms, kThreads}, stream, {&c, &a, &b, &n, &scale});
  }
};

// Small kernels, one after the other, in a graph: from the start of one to the start of the next.
class Chain final : public UnitLoad {
 public:
  Chain(const Kernels& kernels, int launches)
      : UnitLoad(kernels.context(), {.work = static_cast<double>(launches), .calls = launches, .steps = launches}),
        kernels_(kernels),
        launches_(launches),
        count_(kernels.context(), sizeof(unsigned)) {}

  const char* unit() const override { return "launches/s"; }

 private:
  const Kernels& kernels_;
  int launches_;
  gpu::DeviceMemory count_;

 public:
  void submit(const gpu::Stream& stream) override {
    gpu::DevicePointer count = count_.address();
    for (int i = 0; i < launches_; ++i) kernels_.launch({"elbow_small", 1, 32}, stream, {&count});
  }
};

class GemmLoad final : public UnitLoad {
 public:
  GemmLoad(const gpu::Context& context, const gpu::BlasLibrary& blas, const gpu::GemmShape& shape)
      : UnitLoad(context, {.work = 1e-6 * shape.flops()}),
        shape_(shape),
        a_(context, 2 * shape.m * shape.k),
        b_(context, 2 * shape.k * shape.n),
        d_(context, 2 * shape.m * shape.n),
        gemm_(context, blas, shape, a_.address(), b_.address(), d_.address()) {
    fill_device(context, a_.address(), a_.size(), Content::brains, kSeedA);
    fill_device(context, b_.address(), b_.size(), Content::brains, kSeedB);
  }

  const char* unit() const override { return "Mflop/s"; }

  void clear() override {
    for (std::uint64_t i = 0; i < kChecks; ++i) write_device(context_, checked(i), &kNoNumber, sizeof(kNoNumber));
  }

  std::string check() override {
    for (std::uint64_t i = 0; i < kChecks; ++i) {
      std::uint16_t brain = 0;
      read_device(context_, &brain, checked(i), sizeof(brain));
      if (!is_right((checked(i) - d_.address()) / 2, real_of(brain))) return "a product has a wrong value";
    }
    return check_not_zeros(context_, a_.address(), a_.size());
  }

 private:
  gpu::GemmShape shape_;
  gpu::DeviceMemory a_;
  gpu::DeviceMemory b_;
  gpu::DeviceMemory d_;
  gpu::Gemm gemm_;

  // Of D, column-major, all over the product.
  gpu::DevicePointer checked(std::uint64_t which) const {
    return d_.address() + 2 * (random_bits(which) % (shape_.m * shape_.n));
  }

  // An element as the host computes it, and how far BF16 and the order of the sum may be away from it.
  bool is_right(std::uint64_t element, float value) const {
    const std::uint64_t row = element % shape_.m;
    const std::uint64_t column = element / shape_.m;
    double sum = 0;
    double size = 0;
    for (std::uint64_t i = 0; i < shape_.k; ++i) {
      const double one = static_cast<double>(brain_at(row + i * shape_.m, kSeedA)) *
                         static_cast<double>(brain_at(column * shape_.k + i, kSeedB));
      sum += one;
      size += std::fabs(one);
    }
    return std::fabs(static_cast<double>(value) - sum) <= kBrainStep * std::fabs(sum) + kSumStep * size;
  }

 public:
  void submit(const gpu::Stream& stream) override { gemm_.launch(stream); }
};

}  // namespace

std::unique_ptr<UnitLoad> make_triad(const Kernels& kernels, const Work& work) {
  return std::make_unique<Triad>(kernels, work.bytes);
}

std::unique_ptr<UnitLoad> make_chain(const Kernels& kernels, const Work& work) {
  return std::make_unique<Chain>(kernels, work.launches);
}

std::unique_ptr<UnitLoad> make_gemm(const gpu::Context& context, const gpu::BlasLibrary& blas, const Work& work) {
  return std::make_unique<GemmLoad>(context, blas, gpu::GemmShape{work.m, work.n, work.k, work.sm_target});
}

}  // namespace elbowroom::gpu_bench
