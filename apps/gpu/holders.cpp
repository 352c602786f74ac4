#include "holders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "buffers.hpp"

namespace elbowroom::gpu_bench {
namespace {

constexpr std::uint32_t kNowhere = ~0U;
constexpr int kCopyThreads = 1024;
constexpr std::uint64_t kHeldSeed = 3;

// How far a block has come: elbow_copy's notes.
struct Moved {
  std::uint64_t bytes;
  std::uint64_t ns;
};

// k blocks that copy, each its part of the buffers.
class SmCopy final : public Holder {
 public:
  SmCopy(const Kernels& kernels, const Work& work, double patience)
      : Holder(kernels, work, patience, {work.pairs ? "elbow_copy_pairs" : "elbow_copy", kCopyThreads}),
        pace_(1e6 * work.pace_mb_s / work.sms),
        from_(kernels.context(), rounded(work)),
        moved_(kernels.context(), sizeof(Moved) * static_cast<std::size_t>(work.sms)),
        seen_(kernels.context(), kLooks * moved_.size(), -1) {
    if (work.direction == "host") {
      host_.emplace(kernels.context(), from_.size(), work.node);
    } else {
      device_.emplace(kernels.context(), from_.size());
    }
    to_address_ = device_ ? device_->address() : host_->address();
    fill_device(kernels.context(), from_.address(), from_.size(), Content::bytes, kHeldSeed);
  }

  const char* unit() const override { return "MB/s"; }

  void start() override {
    copying_ = asked_ = false;
    Holder::start();
  }

  // Every block has copied: its first pieces may take longer.
  bool running() override {
    if (copying_) return true;
    if (!Holder::running()) return false;
    if (asked_) {
      if (!seen_all()) return false;
      asked_ = false;
      copying_ = std::all_of(moved(kFirst), moved(kFirst) + sms_, [](const Moved& block) { return block.bytes > 0; });
    } else {
      look(moved(kFirst), moved_);
      asked_ = true;
    }
    return copying_;
  }

  void begin() override { look(moved(kBegin), moved_); }
  void end() override { look(moved(kEnd), moved_); }

  Sample sample() const override {
    Sample sample;
    double rate = 0;
    for (int block = 0; block < sms_; ++block) {
      const Moved& begin = moved(kBegin)[block];
      const Moved& end = moved(kEnd)[block];
      if (end.ns <= begin.ns) return sample;
      rate += 1e3 * static_cast<double>(end.bytes - begin.bytes) / static_cast<double>(end.ns - begin.ns);
    }
    sample.rate = rate;
    sample.units = 1;
    return sample;
  }

 private:
  enum Look { kFirst, kBegin, kEnd, kLooks };

  double pace_;  // bytes/s of a block
  gpu::DeviceMemory from_;
  std::optional<gpu::DeviceMemory> device_;
  std::optional<gpu::PinnedMemory> host_;
  gpu::DeviceMemory moved_;
  gpu::PinnedMemory seen_;
  bool asked_ = false;  // how far the blocks have come
  bool copying_ = false;
  gpu::DevicePointer from_address_ = from_.address();
  gpu::DevicePointer to_address_ = 0;
  gpu::DevicePointer moved_address_ = moved_.address();
  unsigned long long bytes_ = from_.size();

  Moved* moved(int which) const { return static_cast<Moved*>(seen_.data()) + which * sms_; }

  // Each block's part is whole vectors of 16 bytes.
  static std::size_t rounded(const Work& work) {
    const std::size_t part = 16 * static_cast<std::size_t>(work.sms);
    return std::max(work.bytes / part, std::size_t{1}) * part;
  }

  std::vector<void*> arguments() override {
    std::vector<void*> all = Holder::arguments();
    all.insert(all.end(), {&moved_address_, &to_address_, &from_address_, &bytes_, &pace_});
    return all;
  }
};

}  // namespace

void require_device_flag(const gpu::Context& context, gpu::DevicePointer flag) {
  if (gpu::is_plain_device_memory(context, flag)) return;
  throw gpu::Unavailable("the stop flag of a kernel is not in device memory: polling it would slow all other kernels",
                         "use a plain allocation on the device");
}

Holder::Holder(const Kernels& kernels, const Work& work, double patience, Kernel kernel)
    : kernels_(kernels),
      sms_(work.sms),
      kernel_(kernel),
      patience_(patience),
      stop_(kernels.context(), sizeof(std::uint32_t)),
      where_(kernels.context(), sizeof(std::uint32_t) * static_cast<std::size_t>(sms_)),
      host_(kernels.context(), sizeof(std::uint32_t) * (static_cast<std::size_t>(sms_) + 2), -1) {
  const int available = kernels.context().facts().sms;
  if (sms_ > available) {
    throw gpu::Unavailable(std::to_string(sms_) + " SMs would be held, but the device has " + std::to_string(available),
                           "hold fewer SMs");
  }
  if (work.pairs && !kernels.has_clusters()) {
    throw gpu::Unavailable("SMs are held in pairs by clusters of blocks, which need compute capability 9.0",
                           "hold them one by one");
  }
  require_device_flag(kernels.context(), stop_.address());
  kernels.require_alone(kernel_.name, kernel_.threads);
  static_cast<std::uint32_t*>(host_.data())[0] = 0;
  static_cast<std::uint32_t*>(host_.data())[1] = 1;
}

void Holder::start() {
  held_ = looking_ = shared_ = false;
  const std::vector<std::uint32_t> nowhere(static_cast<std::size_t>(sms_), kNowhere);
  write_device(kernels_.context(), where_.address(), nowhere.data(), where_.size());
  write_device(kernels_.context(), stop_.address(), host_.data(), stop_.size());
  stream_.emplace(kernels_.context());
  control_.emplace(kernels_.context());
  kernels_.launch({kernel_.name, sms_, kernel_.threads, true}, *stream_, arguments());
}

void Holder::warm() {
  start();
  stop();
}

// Every block has written its SM. The copy that looks runs on a copy engine, and needs no SM.
bool Holder::running() {
  if (held_) return true;
  if (!looking_) look(seen(), where_);
  looking_ = true;
  if (!seen_all()) return false;
  looking_ = false;
  const std::set<std::uint32_t> distinct(seen(), seen() + sms_);
  held_ = distinct.count(kNowhere) == 0;
  shared_ = held_ && distinct.size() < static_cast<std::size_t>(sms_);
  return held_;
}

void Holder::look(void* to, const gpu::DeviceMemory& from) {
  const gpu::Driver& driver = kernels_.context().driver();
  driver.check(driver.cuMemcpyDtoHAsync(to, from.address(), from.size(), control_->handle()),
               "reading what a kernel that holds SMs has noted");
}

void Holder::wait_for(const gpu::Stream& stream) {
  const auto begun = std::chrono::steady_clock::now();
  while (!stream.done()) {
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begun;
    if (waited.count() < patience_) continue;
    kernels_.context().driver().abandon();
    throw gpu::GpuError(gpu::kLaunchTimeout, std::string("kernel ") + kernel_.name + " was stopped, and still holds " +
                                                 std::to_string(sms_) + " SMs after " + fmt::format("{:g}", patience_) +
                                                 " s");
  }
}

void Holder::stop() {
  if (!stream_) return;
  const gpu::Driver& driver = kernels_.context().driver();
  if (driver.abandoned()) return;
  driver.check(driver.cuMemcpyHtoDAsync(stop_.address(), static_cast<std::uint32_t*>(host_.data()) + 1, stop_.size(),
                                        control_->handle()),
               "stopping the kernel that holds SMs");
  wait_for(*control_);
  wait_for(*stream_);
  stream_.reset();
  control_.reset();
}

std::vector<Flag> Holder::flags() const {
  if (!shared_) return {};
  return {{"shared_sms", "blocks that were to hold " + std::to_string(sms_) + " SMs shared some"}};
}

std::unique_ptr<Holder> make_sm_copy(const Kernels& kernels, const Work& work, double patience) {
  return std::make_unique<SmCopy>(kernels, work, patience);
}

}  // namespace elbowroom::gpu_bench
