#include <algorithm>
#include <vector>

#include "buffers.hpp"
#include "load_kinds.hpp"

namespace elbowroom::gpu_bench {
namespace {

// Of a batch: enough for 200 us of an engine that copies 80 GB/s, or 1.5 million pieces a second.
constexpr std::size_t kBatchBytes = std::size_t{16} << 20U;
constexpr std::size_t kBatchCopies = 512;
constexpr std::uint64_t kCopySeed = 1;

const char* const kUnit = "MB/s";

double work_of(std::size_t bytes) { return 1e-6 * static_cast<double>(bytes); }

class HostCopy final : public UnitLoad {
 public:
  HostCopy(const gpu::Context& context, const Work& work, bool to_device)
      : UnitLoad(context, {.work = work_of(work.bytes)}),
        bytes_(work.bytes),
        to_device_(to_device),
        node_(work.node),
        host_(context, work.bytes, work.node),
        device_(context, work.bytes) {
    if (to_device) {
      fill(host_.data(), bytes_, Content::bytes, kCopySeed);
    } else {
      fill_device(context, device_.address(), bytes_, Content::bytes, kCopySeed);
    }
  }

  const char* unit() const override { return kUnit; }

  void clear() override {
    to_device_ ? clear_device(context_, device_.address(), bytes_) : clear_host(host_.data(), bytes_);
  }

  std::string check() override {
    return to_device_ ? check_device(context_, device_.address(), bytes_, Content::bytes, kCopySeed)
                      : check_host(host_.data(), bytes_, Content::bytes, kCopySeed);
  }

  std::vector<Flag> flags() const override {
    std::vector<Flag> flags = UnitLoad::flags();
    const double share = node_ < 0 ? 1 : host_.share_on(node_);
    if (share < 0) {
      flags.push_back({"pages_unknown", "the kernel does not say where the pinned pages are"});
    } else if (share < 1) {
      flags.push_back({"wrong_node", "not all pinned pages are on NUMA node " + std::to_string(node_)});
    }
    return flags;
  }

 private:
  std::size_t bytes_;
  bool to_device_;
  int node_;
  gpu::PinnedMemory host_;
  gpu::DeviceMemory device_;

 public:
  void submit(const gpu::Stream& stream) override {
    const gpu::Driver& driver = context_.driver();
    driver.check(to_device_ ? driver.cuMemcpyHtoDAsync(device_.address(), host_.data(), bytes_, stream.handle())
                            : driver.cuMemcpyDtoHAsync(host_.data(), device_.address(), bytes_, stream.handle()),
                 "a copy");
  }
};

// Plain, one by one.
class PlainCopy final : public UnitLoad {
 public:
  PlainCopy(const gpu::Context& context, const Work& work)
      : UnitLoad(context, {.work = work_of(work.bytes)}), from_(context, work.bytes), to_(context, work.bytes) {
    fill_device(context, from_.address(), from_.size(), Content::bytes, kCopySeed);
  }

  const char* unit() const override { return kUnit; }
  void clear() override { clear_device(context_, to_.address(), to_.size()); }
  std::string check() override { return check_device(context_, to_.address(), to_.size(), Content::bytes, kCopySeed); }

 private:
  gpu::DeviceMemory from_;
  gpu::DeviceMemory to_;

 public:
  void submit(const gpu::Stream& stream) override {
    const gpu::Driver& driver = context_.driver();
    driver.check(driver.cuMemcpyDtoDAsync(to_.address(), from_.address(), from_.size(), stream.handle()),
                 "a copy inside the device");
  }
};

// By cuMemcpyBatchAsync. Graphs have no such copies, so that small ones are submitted by one call, each with a
// destination of its own: the copies of a batch are in no order.
class BatchCopy final : public UnitLoad {
 public:
  BatchCopy(const gpu::Context& context, const Work& work)
      : UnitLoad(context, {.work = work_of(work.bytes) * copies_of(work.bytes), .in_graph = false}),
        from_(context, work.bytes * copies_of(work.bytes)),
        to_(context, from_.size()) {
    if (context.driver().cuMemcpyBatchAsync == nullptr) {
      throw gpu::Unavailable("the driver (CUDA " + gpu::version_text(context.driver().version()) +
                                 ") has no cuMemcpyBatchAsync, by which copies inside the device leave the SMs free",
                             "update NVIDIA's driver to CUDA 12.8 or newer");
    }
    fill_device(context, from_.address(), from_.size(), Content::bytes, kCopySeed);
    for (std::size_t at = 0; at < from_.size(); at += work.bytes) {
      sources_.push_back(from_.address() + at);
      destinations_.push_back(to_.address() + at);
    }
    sizes_.assign(sources_.size(), work.bytes);
  }

  const char* unit() const override { return kUnit; }
  void clear() override { clear_device(context_, to_.address(), to_.size()); }
  std::string check() override { return check_device(context_, to_.address(), to_.size(), Content::bytes, kCopySeed); }

 private:
  gpu::DeviceMemory from_;
  gpu::DeviceMemory to_;
  std::vector<gpu::DevicePointer> sources_;
  std::vector<gpu::DevicePointer> destinations_;
  std::vector<std::size_t> sizes_;

  static std::size_t copies_of(std::size_t bytes) {
    return std::clamp<std::size_t>(kBatchBytes / bytes, 1, kBatchCopies);
  }

 public:
  void submit(const gpu::Stream& stream) override {
    gpu::CopyAttributes attributes{};
    attributes.source_order = gpu::kSourceOrderStream;
    attributes.flags = gpu::kPreferOverlapWithCompute;
    std::size_t first = 0;
    std::size_t failed = 0;
    const gpu::Driver& driver = context_.driver();
    driver.check(driver.cuMemcpyBatchAsync(destinations_.data(), sources_.data(), sizes_.data(), sizes_.size(),
                                           &attributes, &first, 1, &failed, stream.handle()),
                 "a batch copy inside the device");
  }
};

}  // namespace

std::unique_ptr<UnitLoad> make_copy(const gpu::Context& context, const Work& work, Direction direction) {
  if (direction != Direction::d2d) return std::make_unique<HostCopy>(context, work, direction == Direction::h2d);
  if (work.engine == "plain") return std::make_unique<PlainCopy>(context, work);
  return std::make_unique<BatchCopy>(context, work);
}

}  // namespace elbowroom::gpu_bench
