#include "holders.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "buffers.hpp"

namespace elbowroom::gpu_bench {
namespace {

constexpr std::uint32_t kNowhere = ~0U;
constexpr int kCopyThreads = 1024;
constexpr std::uint64_t kSeed = 3;

// k blocks that copy, each its part of the buffers.
class SmCopy final : public Holder {
 public:
  SmCopy(const Kernels& kernels, const Work& work)
      : Holder(kernels, work),
        pace_(1e6 * work.pace_mb_s / work.sms),
        from_(kernels.context(), rounded(work)),
        moved_(kernels.context(), sizeof(std::uint64_t) * static_cast<std::size_t>(work.sms)),
        counts_(static_cast<std::size_t>(work.sms)) {
    if (work.direction == "host") {
      host_.emplace(kernels.context(), from_.size(), work.node);
    } else {
      device_.emplace(kernels.context(), from_.size());
    }
    fill_device(kernels.context(), from_.address(), from_.size(), Content::bytes, kSeed);
  }

  const char* unit() const override { return "MB/s"; }

  void stop() override {
    Holder::stop();
    read_device(kernels_.context(), counts_.data(), moved_.address(), moved_.size());
  }

  Sample sample() const override {
    Sample sample;
    double bytes = 0;
    for (const std::uint64_t count : counts_) bytes += static_cast<double>(count);
    if (held_s_ > 0) sample.rate = 1e-6 * bytes / held_s_;
    sample.units = 1;
    return sample;
  }

 private:
  double pace_;  // bytes/s of a block
  gpu::DeviceMemory from_;
  std::optional<gpu::DeviceMemory> device_;
  std::optional<gpu::PinnedMemory> host_;
  gpu::DeviceMemory moved_;
  std::vector<std::uint64_t> counts_;

  // Each block's part is whole vectors of 16 bytes.
  static std::size_t rounded(const Work& work) {
    const std::size_t part = 16 * static_cast<std::size_t>(work.sms);
    return std::max(work.bytes / part, std::size_t{1}) * part;
  }

  void launch(const gpu::Stream& stream) override {
    gpu::DevicePointer stop = stop_.address(), where = where_.address(), moved = moved_.address();
    gpu::DevicePointer to = device_ ? device_->address() : host_->address();
    gpu::DevicePointer from = from_.address();
    unsigned long long bytes = from_.size();
    kernels_.launch({pairs_ ? "elbow_copy_pairs" : "elbow_copy", sms_, kCopyThreads, true}, stream,
                    {&stop, &where, &moved, &to, &from, &bytes, &pace_});
  }
};

}  // namespace

void require_device_flag(const gpu::Context& context, gpu::DevicePointer flag) {
  if (gpu::is_plain_device_memory(context, flag)) return;
  throw gpu::Unavailable("the stop flag of a kernel is not in device memory: polling it would slow all other kernels",
                         "use a plain allocation on the device");
}

Holder::Holder(const Kernels& kernels, const Work& work)
    : kernels_(kernels),
      sms_(work.sms),
      pairs_(work.pairs),
      stop_(kernels.context(), sizeof(std::uint32_t)),
      where_(kernels.context(), sizeof(std::uint32_t) * static_cast<std::size_t>(sms_)),
      stream_(kernels.context()),
      control_(kernels.context()),
      started_(kernels.context()),
      ended_(kernels.context()),
      host_(kernels.context(), sizeof(std::uint32_t) * (static_cast<std::size_t>(sms_) + 2), -1) {
  const int available = kernels.context().facts().sms;
  if (sms_ > available) {
    throw gpu::Unavailable(
        std::to_string(sms_) + " SMs are to be held, and the device has " + std::to_string(available),
        "hold fewer SMs");
  }
  if (pairs_ && !kernels.has_clusters()) {
    throw gpu::Unavailable("SMs are held in pairs by clusters of blocks, which need compute capability 9.0",
                           "hold them one by one");
  }
  require_device_flag(kernels.context(), stop_.address());
  static_cast<std::uint32_t*>(host_.data())[0] = 0;
  static_cast<std::uint32_t*>(host_.data())[1] = 1;
}

void Holder::launch(const gpu::Stream& stream) {
  gpu::DevicePointer stop = stop_.address(), where = where_.address();
  kernels_.launch({pairs_ ? "elbow_hold_pairs" : "elbow_hold", sms_, 1, true}, stream, {&stop, &where});
}

void Holder::start() {
  held_ = looking_ = shared_ = false;
  const std::vector<std::uint32_t> nowhere(static_cast<std::size_t>(sms_), kNowhere);
  write_device(kernels_.context(), where_.address(), nowhere.data(), where_.size());
  write_device(kernels_.context(), stop_.address(), host_.data(), stop_.size());
  started_.record(stream_);
  launch(stream_);
  ended_.record(stream_);
}

void Holder::warm() {
  start();
  stop();
}

// Every block has written its SM. The copy that looks runs on a copy engine, and needs no SM.
bool Holder::running() {
  if (held_) return true;
  const gpu::Driver& driver = kernels_.context().driver();
  if (!looking_) {
    driver.check(driver.cuMemcpyDtoHAsync(seen(), where_.address(), where_.size(), control_.handle()),
                 "reading which SMs are held");
    looking_ = true;
  }
  if (!control_.done()) return false;
  looking_ = false;
  const std::set<std::uint32_t> distinct(seen(), seen() + sms_);
  held_ = distinct.count(kNowhere) == 0;
  shared_ = held_ && distinct.size() < static_cast<std::size_t>(sms_);
  return held_;
}

void Holder::stop() {
  const gpu::Driver& driver = kernels_.context().driver();
  driver.check(driver.cuMemcpyHtoDAsync(stop_.address(), static_cast<std::uint32_t*>(host_.data()) + 1, stop_.size(),
                                        control_.handle()),
               "stopping the kernel that holds SMs");
  control_.synchronize();
  stream_.synchronize();
  held_s_ = ended_.seconds_since(started_);
}

std::vector<Flag> Holder::flags() const {
  if (!shared_) return {};
  return {{"shared_sms", "blocks that were to hold " + std::to_string(sms_) + " SMs shared some"}};
}

std::unique_ptr<Holder> make_sm_copy(const Kernels& kernels, const Work& work) {
  return std::make_unique<SmCopy>(kernels, work);
}

}  // namespace elbowroom::gpu_bench
