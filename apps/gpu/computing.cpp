#include "computing.hpp"

#include <algorithm>
#include <cmath>

#include "buffers.hpp"

namespace elbowroom::gpu_bench {
namespace {

constexpr int kThreads = 512;
constexpr int kBlocksPerSm = 4;
constexpr float kScale = 3;
constexpr std::size_t kChecked = 1024;  // floats

// c = a + s b on three arrays of a third of `bytes` each.
class Triad final : public UnitLoad {
 public:
  Triad(const Kernels& kernels, std::size_t bytes)
      : UnitLoad(kernels.context(), 1e-6 * 3.0 * static_cast<double>(16 * vectors_in(bytes)), 0),
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

// Small kernels, one after the other: what a launch takes.
class Chain final : public UnitLoad {
 public:
  Chain(const Kernels& kernels, int launches)
      : UnitLoad(kernels.context(), launches, launches),
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
      : UnitLoad(context, 1e-6 * shape.flops(), 0),
        a_(context, 2 * shape.m * shape.k),
        b_(context, 2 * shape.k * shape.n),
        d_(context, 2 * shape.m * shape.n),
        gemm_(context, blas, shape, a_.address(), b_.address(), d_.address()) {
    fill_device(context, a_.address(), a_.size(), Content::brains, 1);
    fill_device(context, b_.address(), b_.size(), Content::brains, 2);
  }

  const char* unit() const override { return "Mflop/s"; }
  std::string check() override { return check_not_zeros(context_, a_.address(), a_.size()); }

 private:
  gpu::DeviceMemory a_;
  gpu::DeviceMemory b_;
  gpu::DeviceMemory d_;
  gpu::Gemm gemm_;

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
