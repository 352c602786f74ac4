#include "copies.hpp"

#include <algorithm>
#include <optional>

#include "buffers.hpp"

namespace elbowroom::gpu_bench {
namespace {

constexpr std::size_t kLeastOfUnit = std::size_t{1} << 20U;  // bytes: smaller copies make a unit together
constexpr std::size_t kMostOfUnit = 64;                      // copies
constexpr std::uint64_t kSeed = 1;

int copies_of_unit(std::size_t bytes) {
  return static_cast<int>(std::clamp<std::size_t>(kLeastOfUnit / bytes, 1, kMostOfUnit));
}

const char* const kUnit = "MB/s";

class Copy : public UnitLoad {
 public:
  Copy(const gpu::Context& context, const Work& work)
      : UnitLoad(context, 1e-6 * static_cast<double>(work.bytes) * copies_of_unit(work.bytes), 0),
        bytes_(work.bytes),
        copies_(copies_of_unit(work.bytes)) {}
  const char* unit() const override { return kUnit; }

 protected:
  std::size_t bytes_;
  int copies_;
};

class HostCopy final : public Copy {
 public:
  HostCopy(const gpu::Context& context, const Work& work, bool to_device)
      : Copy(context, work),
        to_device_(to_device),
        node_(work.node),
        host_(context, work.bytes, work.node),
        device_(context, work.bytes) {
    if (to_device) {
      fill(host_.data(), bytes_, Content::bytes, kSeed);
    } else {
      fill_device(context, device_.address(), bytes_, Content::bytes, kSeed);
    }
  }

  void clear() override {
    to_device_ ? clear_device(context_, device_.address(), bytes_) : clear_host(host_.data(), bytes_);
  }

  std::string check() override {
    return to_device_ ? check_device(context_, device_.address(), bytes_, Content::bytes, kSeed)
                      : check_host(host_.data(), bytes_, Content::bytes, kSeed);
  }

  std::vector<Flag> flags() const override {
    if (node_ < 0) return {};
    const double share = host_.share_on(node_);
    if (share < 0) return {{"pages_unknown", "the kernel does not say where the pinned pages are"}};
    if (share < 1) return {{"wrong_node", "not all pinned pages are on NUMA node " + std::to_string(node_)}};
    return {};
  }

 private:
  bool to_device_;
  int node_;
  gpu::PinnedMemory host_;
  gpu::DeviceMemory device_;

 public:
  void submit(const gpu::Stream& stream) override {
    const gpu::Driver& driver = context_.driver();
    for (int i = 0; i < copies_; ++i) {
      driver.check(to_device_ ? driver.cuMemcpyHtoDAsync(device_.address(), host_.data(), bytes_, stream.handle())
                              : driver.cuMemcpyDtoHAsync(host_.data(), device_.address(), bytes_, stream.handle()),
                   "a copy");
    }
  }
};

class InsideCopy final : public Copy {
 public:
  InsideCopy(const gpu::Context& context, const Work& work)
      : Copy(context, work), plain_(work.engine == "plain"), from_(context, work.bytes), to_(context, work.bytes) {
    if (!plain_ && context.driver().cuMemcpyBatchAsync == nullptr) {
      throw gpu::Unavailable("the driver (CUDA " + gpu::version_text(context.driver().version()) +
                                 ") has no cuMemcpyBatchAsync, by which copies inside the device leave the SMs free",
                             "update NVIDIA's driver to CUDA 12.8 or newer");
    }
    fill_device(context, from_.address(), bytes_, Content::bytes, kSeed);
  }

  void clear() override { clear_device(context_, to_.address(), bytes_); }

  std::string check() override { return check_device(context_, to_.address(), bytes_, Content::bytes, kSeed); }

 private:
  bool plain_;
  gpu::DeviceMemory from_;
  gpu::DeviceMemory to_;

 public:
  void submit(const gpu::Stream& stream) override {
    for (int i = 0; i < copies_; ++i) copy_inside(context_, plain_, to_.address(), from_.address(), bytes_, stream);
  }
};

}  // namespace

void copy_inside(const gpu::Context& context, bool plain, gpu::DevicePointer to, gpu::DevicePointer from,
                 std::size_t bytes, const gpu::Stream& stream) {
  const gpu::Driver& driver = context.driver();
  if (plain) {
    driver.check(driver.cuMemcpyDtoDAsync(to, from, bytes, stream.handle()), "a copy inside the device");
    return;
  }
  gpu::CopyAttributes attributes{};
  attributes.source_order = gpu::kSourceOrderStream;
  attributes.flags = gpu::kPreferOverlapWithCompute;
  std::size_t first = 0;
  std::size_t failed = 0;
  driver.check(driver.cuMemcpyBatchAsync(&to, &from, &bytes, 1, &attributes, &first, 1, &failed, stream.handle()),
               "a batch copy inside the device");
}

std::unique_ptr<UnitLoad> make_copy(const gpu::Context& context, const Work& work, Direction direction) {
  if (direction == Direction::d2d) return std::make_unique<InsideCopy>(context, work);
  return std::make_unique<HostCopy>(context, work, direction == Direction::h2d);
}

}  // namespace elbowroom::gpu_bench
